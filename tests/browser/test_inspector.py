#!/usr/bin/env python3
"""Opens the inspector's page of attention in a headless Chromium and drives it. Usage: test_inspector.py BIN_FOLDER [SCREENSHOT_FOLDER]

With TESSERA_TEST_ALL=1 only; without Chromium it skips, and without nvdisasm it leaves machine code out. Both say so."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
import browser  # noqa: E402

MOST_BYTES = 1 << 20
failures = []


def check(what, holds, detail=''):
    if not holds:
        failures.append(f'{what}: {detail}')
        print(f'FAILED {what}: {detail}')


def pages(inspect, folder):
    attention, both, bare = (os.path.join(folder, name) for name in ('attention.html', 'both.html', 'bare.html'))
    subprocess.run([inspect, 'attention-bf16', '--html', attention], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([inspect, 'layer_norm-f32', '--arch', 'sm_90a,sm_80', '--html', both], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([inspect, 'layer_norm-f32', '--html', bare, '--no-source'], check=True, stdout=subprocess.DEVNULL)
    return attention, both, bare


def shown(page, pane):
    """Texts of the rows that are marked in a pane, wherever it is scrolled to; those that can be seen have the class."""
    marked = page.run(f'[...panes.{pane}.marked].map((i) => panes.{pane}.lines()[i].text)')
    seen = page.run(f'[...document.querySelectorAll("[data-pane={pane}] .row")].every((row) => row.classList.contains("on") === panes.{pane}.marked.has(Number(row.dataset.i)))')
    check(f'rows of {pane} show their marks', seen)
    return marked


def row(page, pane, text):
    """The number of the first row of a pane that contains a text."""
    return page.run(f'panes.{pane}.lines().findIndex((line) => line.text.includes({text!r}))')


def click(page, pane, number):
    page.run(f'panes.{pane}.show({number}); panes.{pane}.draw()')
    box = page.run(f'(() => {{ const r = document.querySelector("[data-pane={pane}] .row[data-i=\'{number}\']").getBoundingClientRect(); '
                   'return [r.left + 90, r.top + 9]; })()')
    for kind in ('mouseMoved', 'mousePressed', 'mouseReleased'):
        page.call('Input.dispatchMouseEvent', type=kind, x=box[0], y=box[1], button='left' if kind != 'mouseMoved' else 'none', clickCount=1)


def key(page, text):
    for kind in ('keyDown', 'keyUp'):
        page.call('Input.dispatchKeyEvent', type=kind, key=text, text=text if kind == 'keyDown' and len(text) == 1 else '')


def drive(file, has_sass):
    check('size', os.path.getsize(file) <= MOST_BYTES, os.path.getsize(file))
    with browser.Browser() as page:
        page.open('file://' + file)
        ready = page.run('performance.getEntriesByType("navigation")[0].loadEventEnd')
        for pane in ('graph', 'plan', 'ptx'):
            page.run(f'document.querySelector("[data-kind={pane}]").click()')
        # A click on a line of CUDA marks the author's line, the node, the step, PTX and machine code.
        number = row(page, 'cuda', 'tma_load')
        click(page, 'cuda', number)
        check('link', page.run('location.hash') == f'#cuda:{number + 1}', page.run('location.hash'))
        wanted = {'cpp': 'load(', 'graph': 'load', 'plan': '<-', 'cuda': 'tma_load', 'ptx': 'cp.async.bulk.tensor'}
        if has_sass:
            wanted['sass'] = 'UTMALDG'
        for pane, text in wanted.items():
            check(f'CUDA marks {pane}', any(text in line for line in shown(page, pane)), shown(page, pane))
        # An author's line leads down to the tensor cores.
        click(page, 'cpp', row(page, 'cpp', 'mma('))
        check('C++ marks CUDA', any('wgmma' in line for line in shown(page, 'cuda')), shown(page, 'cuda')[:5])
        if has_sass:
            check('C++ marks SASS', any('HGMMA' in line for line in shown(page, 'sass')), shown(page, 'sass')[:5])
        # Only rows that can be seen are in the document.
        check('rows in the document', page.run('document.querySelectorAll("[data-pane=ptx] .row").length') < 200)
        hovers = page.run('''(() => { const times = [];
            for (let i = 0; i < panes.cuda.count(); i += 9) { const t = performance.now(); marks({pane: panes.cuda, index: i}); times.push(performance.now() - t); }
            return Math.max(...times); })()''')
        print(f'{os.path.getsize(file)} bytes, loaded in {ready:.0f} ms, the slowest of the hovers took {hovers:.1f} ms')
        # Keys.
        page.run('select(panes.cuda, 10); panes.cuda.rows.focus()')
        key(page, 'j')
        check('j', page.run('selected.index') == 11, page.run('selected.index'))
        key(page, 'k')
        check('k', page.run('selected.index') == 10, page.run('selected.index'))
        before = page.run('pass')
        key(page, 'p')
        check('p', page.run('pass') == before - 1, page.run('pass'))
        key(page, 'n')
        key(page, '/')
        check('/', page.run('document.activeElement.id') == 'search', page.run('document.activeElement.id'))
        page.run('select(panes.cuda, 0)')
        for text in ('w', 'wg', 'wgmma'):
            page.run(f'search("{text}")')
        check('typing a search ends at its first hit', page.run('focused.at === Math.min(...focused.hits)'), page.run('focused.at'))
        check('search', page.run('focused.hits.size') > 0 and 'wgmma' in page.run('focused.lines()[focused.at].text'))
        key(page, 'Escape')
        check('Escape', page.run('selected === null'))
        # The changes that a pass made.
        page.run('showPass(view.plan.passes.findIndex((one) => one.name === "memory")); changes.click()')
        added = page.run('panes.plan.lines().filter((line) => line.style === "plus").map((line) => line.text)')
        check('changes of the pass memory', any('of shared memory' in line for line in added) and
              page.run('panes.plan.lines().some((line) => line.style === "minus")'), added)
        page.run('changes.click()')
        # The other sheets.
        for tab, minimum in (('overview', 1), ('graph', 20), ('layouts', 64), ('memory', 3), ('roles', 20)):
            page.run(f'document.querySelector("[data-tab={tab}]").click()')
            count = page.run('document.querySelectorAll("main svg rect, main svg text, main table").length')
            check(f'sheet {tab}', count >= minimum, count)
        page.run('document.querySelector("[data-tab=graph]").click(); document.querySelector("g.node.math").dispatchEvent(new MouseEvent("click", {bubbles: true}))')
        check('a click in the graph', page.run('tab') == 'code' and page.run('selected.pane.kind') == 'graph')
        check('errors', not page.errors, page.errors)
    with browser.Browser() as page:  # addresses that name nothing
        for address in ('#%', '#sass:999999', '#x:1', '#cuda:-1', '#cuda:x', '#constructor'):
            page.open('about:blank')
            page.open(f'file://{file}{address}')
        check('errors of bad addresses', not page.errors, page.errors)
    with browser.Browser() as page:  # a deep link
        page.open(f'file://{file}#cuda:{number + 1}')
        check('deep link', page.run('selected && selected.pane.kind + ":" + selected.index') == f'cuda:{number}')
        check('errors of a deep link', not page.errors, page.errors)


def drive_others(both, bare):
    with browser.Browser() as page:
        page.open('file://' + both)
        page.run('document.getElementById("view").value = 1; document.getElementById("view").onchange()')
        check('second view', 'sm_80' in page.run('document.title'), page.run('document.title'))
        page.run('document.getElementById("compare").value = 0; document.getElementById("compare").onchange()')
        styles = page.run('[...new Set(panes.cuda.lines().map((line) => line.style || ""))].sort()')
        check('comparison', styles == ['', 'minus', 'plus'], styles)
        check('errors of two views', not page.errors, page.errors)
    with browser.Browser() as page:
        page.open('file://' + bare)
        check('no source', not re.search(r'kernels\.hpp|rstd', page.run('document.documentElement.innerHTML')))
        check('errors without source', not page.errors, page.errors)


def main():
    if not os.environ.get('TESSERA_TEST_ALL'):
        print('skipped: the inspector in a browser is tested by scripts/test --all')
        return 0
    if not browser.find():
        print('skipped: there is no Chromium (Debian: apt install chromium)')
        return 0
    inspect = os.path.join(sys.argv[1], 'inspect')
    with tempfile.TemporaryDirectory() as folder:
        attention, both, bare = pages(inspect, folder)
        with open(attention, encoding='utf-8') as file:
            text = file.read()
        if 'NVRTC' in text and 'cp.async.bulk.tensor' not in text:
            print('skipped: there is no NVRTC, so pages have no PTX')
            return 0
        has_sass = 'UTMALDG' in text
        if not has_sass:
            print('skipped: machine code, as there is no nvdisasm (pip install nvidia-cuda-nvdisasm, and its folder nvidia/cu13/bin in PATH)')
        drive(attention, has_sass)
        drive_others(both, bare)
        for name, arguments in (('desktop', {}), ('phone', {'width': 390, 'height': 800}), ('dark', {'dark': True})) if len(sys.argv) > 2 else ():
            with browser.Browser(**arguments) as page:
                page.open(f'file://{attention}#cpp:30')
                page.screenshot(os.path.join(sys.argv[2], name + '.png'))
    print(f'{len(failures)} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
