'use strict';
// The page of one kernel. Its data is a list of views: one for each architecture or version. A view has six panes, whose
// lines are linked by level: author's line <- node <- step <- CUDA line <- PTX line, machine instruction.
const DATA = (() => {
  try {
    return JSON.parse(document.getElementById('data').textContent);
  } catch (error) {
    document.getElementById('main').textContent = 'The data of this page is damaged: ' + error.message;
    throw error;
  }
})();
const $ = (tag, attributes = {}, ...inside) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name === 'class') element.className = value; else if (value !== false && value != null) element.setAttribute(name, value);
  element.append(...inside.filter((one) => one != null));
  return element;
};
const rowHeight = 18;
let view = DATA.views[0], compared = -1;  // the view that is shown, and the one that it is compared with

// ---- highlighting: comments, strings, numbers, words; one regular expression for a language

const cWords = 'alignas auto bool break case char class const constexpr continue default do double else enum extern false float for if inline int int8_t int16_t int32_t int64_t long namespace new nullptr operator private public return short signed sizeof static struct switch template this true typename unsigned using void volatile while __device__ __forceinline__ __global__ __launch_bounds__ __noinline__ __restrict__ __shared__ u8 u16 u32 u64 i32 i64 f32';
const grammar = (words, names) => new RegExp(
    '(?<c>//.*|/\\*.*?\\*/)|(?<s>"(?:[^"\\\\]|\\\\.)*"|\'(?:[^\'\\\\]|\\\\.)*\')|(?<k>\\b(?:' + words.trim().split(/\s+/).join('|') +
    ')\\b|^\\s*#\\w+)|(?<d>' + names + ')|(?<n>\\b(?:0[xX][0-9a-fA-F]+|\\d[\\d.]*(?:e[-+]?\\d+)?)[a-z]*\\b)', 'g');
const grammars = {
  cpp: grammar(cWords + ' Tile Index Var In Out InOut Scalar', '\\b(?:load|store|mma|kernel|range|blocks|require|sum|max|exp|where)\\b(?=\\()'),
  cuda: grammar(cWords, '\\b[a-z_]\\w*(?=\\()'),
  graph: grammar('kernel yield grid hints', '%\\d+'),
  plan: grammar('for if while barrier fetch wait kernel role parameter note', '\\b(?:wgmma|tma|mbarriers?|setmaxnreg|elect|expect|release)\\b'),
  ptx: grammar('reg visible entry param pred', '%[\\w.]+|\\$\\w+'),
  sass: grammar('BRA EXIT BAR WARPSYNC BSSY BSYNC CALL RET', '\\bU?[RP]\\d+\\b|\\bS[RB]_\\w+'),
};
function highlighted(line, language) {
  const made = document.createDocumentFragment();
  let at = 0;
  for (const match of line.matchAll(grammars[language])) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    made.append(line.slice(at, match.index), $('span', {class: kind}, match[0]));
    at = match.index + match[0].length;
  }
  made.append(line.slice(at));
  return made;
}

// ---- links

/** Indexes of a view's links in both directions, made once. */
function linksOf(v) {
  if (v.links) return v.links;
  const invert = (lists, count) => {
    const inverse = Array.from({length: count}, () => []);
    lists.forEach((list, i) => list.forEach((to) => inverse[to]?.push(i)));
    return inverse;
  };
  const cudaOfPtx = v.ptx.of, cudaOfSass = v.sass.rows.map((row) => row.k);
  const stepOfCuda = v.cuda.of.map((step) => step < 0 ? [] : [step]);
  const stepOfPlan = v.plan.of.map((step) => step < 0 ? [] : [step]);
  const nodeOfStep = v.steps.map((step) => step.nodes), lineOfStep = v.steps.map((step) => step.at < 0 ? [] : [step.at]);
  const nodeOfGraph = v.graph.of.map((node) => node < 0 ? [] : [node]);
  const lineOfNode = v.nodes.map((node) => node.at < 0 ? [] : [node.at]);
  const count = v.cuda.lines.length;
  return v.links = {
    cudaOfPtx, cudaOfSass, stepOfCuda, stepOfPlan, nodeOfStep, lineOfStep, nodeOfGraph, lineOfNode,
    ptxOfCuda: invert(cudaOfPtx, count), sassOfCuda: invert(cudaOfSass, count), cudaOfStep: invert(stepOfCuda, v.steps.length),
    planOfStep: invert(stepOfPlan, v.steps.length), stepOfNode: invert(nodeOfStep, v.nodes.length), stepOfLine: invert(lineOfStep, v.cpp.lines.length),
    graphOfNode: invert(nodeOfGraph, v.nodes.length), nodeOfLine: invert(lineOfNode, v.cpp.lines.length),
  };
}
/** The lines of all panes that a pane's line came from, and those that it became. */
function related(v, pane, index) {
  const l = linksOf(v);
  const all = (table, from) => { const to = new Set(); for (const i of from) for (const j of table[i] || []) to.add(j); return to; };
  const join = (...sets) => new Set(sets.flatMap((set) => [...set]));
  const one = new Set([index]), none = new Set();
  let cpp = none, nodes = none, steps = none, cuda = none;
  if (pane === 'sass' || pane === 'ptx' || pane === 'cuda') {
    cuda = pane === 'cuda' ? one : all(pane === 'sass' ? l.cudaOfSass : l.cudaOfPtx, one);
    steps = all(l.stepOfCuda, cuda);
  } else if (pane === 'plan') steps = all(l.stepOfPlan, one);
  else if (pane === 'graph') nodes = all(l.nodeOfGraph, one);
  else cpp = one;
  // Up, to the author's lines.
  if (steps.size) { nodes = all(l.nodeOfStep, steps); cpp = all(l.lineOfStep, steps); }
  if (nodes.size && pane !== 'cpp') cpp = join(cpp, all(l.lineOfNode, nodes));
  // Down, to the machine's instructions.
  if (pane === 'cpp') { nodes = all(l.nodeOfLine, cpp); steps = join(all(l.stepOfNode, nodes), all(l.stepOfLine, cpp)); }
  if (pane === 'graph') steps = all(l.stepOfNode, nodes);
  if (pane === 'cpp' || pane === 'graph' || pane === 'plan') cuda = all(l.cudaOfStep, steps);
  return {cpp, nodes, steps, cuda, graph: all(l.graphOfNode, nodes), plan: pane === 'plan' && !steps.size ? one : all(l.planOfStep, steps),
          ptx: pane === 'ptx' ? one : all(l.ptxOfCuda, cuda), sass: pane === 'sass' ? one : all(l.sassOfCuda, cuda)};
}

// ---- panes: only the rows that can be seen are in the document

class Pane {
  constructor(kind, title, language) {
    Object.assign(this, {kind, title, language, marked: new Set(), hits: new Set(), at: -1, drawn: ''});
    this.note = $('span', {class: 'note'});
    this.tools = $('span');
    const copy = $('button', {title: 'Copy the text of this pane'}, 'copy');
    copy.onclick = () => navigator.clipboard?.writeText(this.lines().map((line) => line.text).join('\n'));
    this.space = $('div', {class: 'space'});
    this.rows = $('div', {class: 'rows', tabindex: 0, role: 'listbox', 'aria-multiselectable': true, 'aria-label': title}, this.space);
    this.element = $('section', {class: 'pane', 'data-pane': kind}, $('div', {class: 'top'}, $('b', {}, title), this.tools, this.note, copy), this.rows);
    this.rows.addEventListener('scroll', () => this.draw());
    this.rows.addEventListener('pointermove', (event) => hover(this, this.under(event)));
    this.rows.addEventListener('pointerleave', () => hover(null, -1));
    this.rows.addEventListener('click', (event) => { const i = this.under(event); if (i >= 0) select(this, i); });
  }
  under(event) {
    const i = Math.floor((event.clientY - this.space.getBoundingClientRect().top) / rowHeight);
    return i >= 0 && i < this.count() ? i : -1;
  }
  lines() { return this.cache ??= linesOf(this); }
  count() { return this.lines().length; }
  refresh() { this.cache = null; this.drawn = ''; this.draw(); }
  draw() {
    const lines = this.lines(), height = this.rows.clientHeight || 400;
    const first = Math.max(0, Math.floor(this.rows.scrollTop / rowHeight) - 8), last = Math.min(lines.length, first + Math.ceil(height / rowHeight) + 16);
    const key = first + ' ' + last;
    if (this.drawn !== key) {
      this.drawn = key;
      this.space.style.height = lines.length * rowHeight + 'px';
      this.space.replaceChildren(...Array.from({length: last - first}, (_, i) => this.row(lines[first + i], first + i, lines.length)));
    }
    this.mark();
  }
  row(line, i, count) {
    const row = $('div', {class: 'row' + (line.style ? ' ' + line.style : ''), role: 'option', 'aria-posinset': i + 1, 'aria-setsize': count, title: line.title});
    row.style.top = i * rowHeight + 'px';
    row.dataset.i = i;
    row.id = this.kind + '-' + i;
    row.append($('span', {class: 'no'}, String(line.no ?? i + 1)));
    if (line.heat !== undefined) {
      const bar = $('i');
      bar.style.width = Math.round(line.heat * 26) + 'px';
      row.append($('span', {class: 'heat', title: line.heatTitle}, bar));
    }
    if (line.tag) row.append($('span', {class: 'tag ' + line.tag[0], title: line.tag[1]}, {missed: '!', passed: '✓', analysis: 'i'}[line.tag[0]] || ''));
    if (line.control) row.append($('span', {class: 'ctl'}, line.control));
    if (line.cost !== undefined) row.append($('span', {class: 'cost'}, line.cost));
    row.append($('span', {}, highlighted(line.text, this.language)));
    return row;
  }
  mark() {
    if (this.at >= 0) this.rows.setAttribute('aria-activedescendant', this.kind + '-' + this.at); else this.rows.removeAttribute('aria-activedescendant');
    for (const row of this.space.children) {
      const i = Number(row.dataset.i);
      row.classList.toggle('on', this.marked.has(i));
      row.classList.toggle('at', this.at === i);
      row.classList.toggle('hit', this.hits.has(i));
      row.setAttribute('aria-selected', this.marked.has(i));
    }
  }
  show(i) {
    const top = i * rowHeight, box = this.rows;
    if (top < box.scrollTop || top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 3);
  }
}

const share = (value, most) => most ? value / most : 0;
/** What the instructions of a CUDA line and of an author's line have together: stall counts, live registers, local memory. */
function sums(v) {
  if (v.sums) return v.sums;
  const total = {cuda: new Map(), cpp: new Map(), live: new Map(), local: new Set()};
  v.sass.rows.forEach((row) => {
    for (const line of row.k) total.cuda.set(line, (total.cuda.get(line) || 0) + row.c[0]);
    const places = new Set();
    for (const line of row.k) {
      const step = v.steps[v.cuda.of[line]];
      if (!step) continue;
      if (step.at >= 0) places.add(step.at);
      for (const node of step.nodes) if (v.nodes[node].at >= 0) places.add(v.nodes[node].at);
    }
    for (const line of places) {
      total.cpp.set(line, (total.cpp.get(line) || 0) + row.c[0] / places.size);
      total.live.set(line, Math.max(total.live.get(line) || 0, row.r));
      if (/^(@!?U?P\d+ )?(LDL|STL)/.test(row.t)) total.local.add(line);
    }
  });
  return v.sums = total;
}
const controlTitle = ([stall, yields, write, read, wait, reuse]) => [
  'stalls ' + stall + ' cycles before the warp\'s next instruction', yields ? 'yields to another warp' : '',
  wait ? 'waits for barriers ' + [0, 1, 2, 3, 4, 5].filter((i) => wait >> i & 1).join(', ') : '',
  write !== 7 ? 'sets barrier ' + write + ' until its result is written' : '', read !== 7 ? 'sets barrier ' + read + ' until its operands are read' : '',
  reuse ? 'keeps operands in slots ' + [0, 1, 2, 3].filter((i) => reuse >> i & 1).join(', ') : ''].filter(Boolean).join('; ');

/** Lines that differ from those of the view that is compared with; none of a pane whose lines are the author's. */
function comparedLines(kind) {
  const textOf = (v) => kind === 'sass' ? v.sass.rows.map((row) => row.t) : v[kind].lines;
  return difference(textOf(DATA.views[compared]), textOf(view));
}
const isDifference = (kind) => kind !== 'cpp' && (compared >= 0 || (kind === 'plan' && (shows_changes || (pass >= 0 && pass < view.plan.passes.length - 1))));
function linesOf(pane) {
  const v = view;
  if (compared >= 0 && pane.kind !== 'cpp') return comparedLines(pane.kind);
  if (pane.kind === 'cpp') {
    const total = sums(v), most = Math.max(0, ...total.cpp.values());
    const remarks = new Map();
    for (const remark of v.remarks) if (remark.at >= 0) remarks.set(remark.at, [...(remarks.get(remark.at) || []), remark]);
    return v.cpp.lines.map((text, i) => {
      const here = remarks.get(i), cycles = total.cpp.get(i) || 0;
      const worst = here && (here.find((one) => one.status === 'missed') || here.find((one) => one.status === 'passed') || here[0]);
      return {text, no: v.cpp.numbers[i] || '', heat: share(cycles, most),
              heatTitle: cycles ? Math.round(cycles) + ' cycles of stall counts (planned issue delays); at most ' + total.live.get(i) + ' live registers' + (total.local.has(i) ? '; spills or local memory' : '') : undefined,
              tag: worst ? [worst.status, here.map((one) => one.status + ' ' + one.kind + ': ' + one.message).join('\n')] : v.remarks.length ? ['', ''] : undefined};
    });
  }
  if (pane.kind === 'graph') return v.graph.lines.map((text, i) => ({text, cost: v.graph.of[i] < 0 ? '' : costText(v.nodes[v.graph.of[i]])}));
  if (pane.kind === 'plan') return planLines();
  if (pane.kind === 'cuda') {
    const total = sums(v).cuda, most = Math.max(0, ...total.values());
    return v.cuda.lines.map((text, i) => ({text, heat: share(total.get(i) || 0, most), heatTitle: total.has(i) ? total.get(i) + ' cycles of stall counts' : undefined}));
  }
  if (pane.kind === 'ptx') return v.ptx.lines.map((text) => ({text}));
  return v.sass.rows.map((row) => ({text: (row.l ? row.l + ':  ' : '') + row.t, no: row.a.toString(16).padStart(4, '0'), heat: row.c[0] / 15, control: row.s,
                                    heatTitle: controlTitle(row.c), title: controlTitle(row.c) + (row.r ? '; ' + row.r + ' live registers' : '')}));
}
const quantity = (value, unit) => value >= 1e9 ? (value / 1e9).toPrecision(3) + ' G' + unit : value >= 1e6 ? (value / 1e6).toPrecision(3) + ' M' + unit : value >= 1e3 ? (value / 1e3).toPrecision(3) + ' k' + unit : value + ' ' + unit;
const costText = (node) => node.flops ? quantity(node.flops, 'flop') : node.bytes ? quantity(node.bytes, 'B') : '';

// ---- the plan after each pass, with what the pass changed

let pass = -1;  // -1: the last
let shows_changes = false;
function difference(before, after) {
  const m = before.length, n = after.length;
  let start = 0, end = 0;
  while (start < m && start < n && before[start] === after[start]) ++start;
  while (end < m - start && end < n - start && before[m - 1 - end] === after[n - 1 - end]) ++end;
  const a = before.slice(start, m - end), b = after.slice(start, n - end), width = b.length + 1;
  if (a.length * b.length > 4e7)  // too much to compare line by line
    return [...after.slice(0, start).map((text) => ({text})), ...a.map((text) => ({text, style: 'minus'})), ...b.map((text) => ({text, style: 'plus'})), ...after.slice(n - end).map((text) => ({text}))];
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length; i-- > 0;)
    for (let j = b.length; j-- > 0;)
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  const lines = after.slice(0, start).map((text) => ({text}));
  for (let i = 0, j = 0; i < a.length || j < b.length;)
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push({text: a[i++]}), ++j;
    else if (j < b.length && (i === a.length || longest[i * width + j + 1] >= longest[(i + 1) * width + j])) lines.push({text: b[j++], style: 'plus'});
    else lines.push({text: a[i++], style: 'minus'});
  return lines.concat(after.slice(n - end).map((text) => ({text})));
}
const planText = (i) => { while (i >= 0 && !view.plan.passes[i].lines) --i; return i < 0 ? [] : view.plan.passes[i].lines; };
function planLines() {
  const passes = view.plan.passes, last = pass < 0 || pass >= passes.length - 1;
  if (!shows_changes) return (last ? view.plan.lines : planText(pass)).map((text) => ({text}));
  const i = last ? passes.length - 1 : pass;
  return difference(planText(i - 1), planText(i));
}

// ---- the state of the page

const kinds = [['cpp', 'C++', 'cpp'], ['graph', 'Graph', 'graph'], ['plan', 'Plan', 'plan'], ['cuda', 'CUDA', 'cuda'], ['ptx', 'PTX', 'ptx'], ['sass', 'SASS', 'sass']];
const panes = Object.fromEntries(kinds.map(([kind, title, language]) => [kind, new Pane(kind, title, language)]));
const narrow = () => matchMedia('(max-width: 760px)').matches;
let shown = new Set(narrow() ? ['cuda'] : ['cpp', 'cuda', 'sass']);
let focused = panes.cuda, selected = null, hovered = null;

function marks(chosen) {
  const r = chosen && !isDifference(chosen.pane.kind) ? related(view, chosen.pane.kind, chosen.index) : null;
  for (const pane of Object.values(panes)) {
    pane.marked = r && !isDifference(pane.kind) ? r[pane.kind] : new Set();
    pane.at = chosen && chosen.pane === pane ? chosen.index : -1;
    if (shown.has(pane.kind)) pane.mark();
  }
  return r;
}
let pending = 0;
function hover(pane, index) {
  const next = pane && index >= 0 ? {pane, index} : null;
  if (next && hovered && next.pane === hovered.pane && next.index === hovered.index) return;
  hovered = next;
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(() => { marks(hovered || selected); });
}
function select(pane, index) {
  selected = {pane, index};
  focused = pane;
  const r = marks(selected);
  pane.show(index);
  for (const other of Object.values(panes))
    if (other !== pane && shown.has(other.kind) && other.marked.size) { other.show(Math.min(...other.marked)); other.draw(); }
  pane.draw();
  if (!r) return status(pane.title + ' line ' + (index + 1) + ': lines that show changes are not linked');
  const words = ['cpp', 'graph', 'plan', 'cuda', 'ptx', 'sass'].filter((kind) => r[kind].size).map((kind) => r[kind].size + ' ' + panes[kind].title);
  status(pane.title + ' line ' + (index + 1) + ': ' + words.join(', ') + ' line(s) belong together');
  history.replaceState(null, '', '#' + pane.kind + ':' + (index + 1));
}
const status = (text) => { document.getElementById('status').textContent = text; };

// ---- sheets: facts, and pictures

const table = (head, rows) => $('table', {}, $('thead', {}, $('tr', {}, ...head.map((h) => $('th', {}, h)))),
                                $('tbody', {}, ...rows.map((row) => $('tr', {}, ...row.map((cell) => $('td', {class: typeof cell === 'number' ? 'num' : ''}, cell instanceof Node ? cell : String(cell)))))));
const svgNode = (tag, attributes = {}, text) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
function figure(title, svg) {
  const save = $('button', {}, 'save SVG');
  save.onclick = () => {
    const copy = svg.cloneNode(true), style = svgNode('style');
    // The colors that the page has now: other programs know neither its variables nor light-dark().
    const of = (selector, name) => { const one = svg.querySelector(selector); return one ? getComputedStyle(one)[name] : 'gray'; };
    style.textContent = `text{font:11px monospace;fill:${of('text:not(.faint)', 'fill')}}.box{fill:${of('.box', 'fill')};stroke:${of('.box', 'stroke')}}` +
        `.wire{fill:none;stroke:${of('.wire', 'stroke')}}.faint{fill:${of('.faint', 'fill')}}`;
    copy.prepend(style);
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    const url = URL.createObjectURL(new Blob([copy.outerHTML], {type: 'image/svg+xml'}));
    const anchor = $('a', {href: url, download: view.kernel + '-' + title.replace(/\W+/g, '-') + '.svg'});
    anchor.click();
    URL.revokeObjectURL(url);
  };
  return $('figure', {}, $('figcaption', {}, title, save), svg);
}
function jump(kind, index) {
  openTab('code');
  if (index < 0) return;
  if (narrow()) shown = new Set([kind]), showPanes();
  else if (!shown.has(kind)) shown.add(kind), showPanes();
  // Lines are those of the final plan.
  if (kind === 'plan' && isDifference(kind)) shows_changes = false, changes.setAttribute('aria-pressed', false), showPass(Infinity);
  select(panes[kind], index);
}
function overview() {
  const sheet = $('div', {class: 'sheet'});
  sheet.append($('h2', {}, 'Launch and resources'), table(['', ''], view.facts));
  if (view.notes.length) sheet.append($('h2', {}, 'Notes'), $('ul', {}, ...view.notes.map((note) => $('li', {}, note))));
  sheet.append($('h2', {}, 'Remarks'));
  if (view.remarks.length)
    sheet.append(table(['', 'line', 'subject', ''], view.remarks.map((remark) => {
      const place = remark.file ? remark.file.split('/').pop() + ':' + remark.line : '';
      const link = remark.at >= 0 ? $('a', {href: '#cpp:' + (remark.at + 1)}, place) : place;
      return [$('span', {class: remark.status}, remark.status), link, remark.kind, remark.message];
    })));
  else sheet.append($('p', {}, 'None.'));
  const costs = view.nodes.map((node, i) => ({...node, i})).filter((node) => node.flops || node.bytes);
  if (costs.length) {
    const line = (node) => view.graph.of.indexOf(node.i);
    sheet.append($('h2', {}, 'Bytes and flops of a grid tile'), $('p', {}, view.roofline),
                 table(['node', 'op', 'bytes', 'flops', 'at the roof'], costs.map((node) => {
                   const link = $('a', {href: '#graph:' + (line(node) + 1)}, '%' + node.number);
                   return [link, node.op, node.bytes, node.flops, node.bound];
                 })));
  }
  sheet.append($('h2', {}, 'Make this page again'), $('pre', {}, view.command));
  return sheet;
}
/** Makes a part of a picture work as a button. */
function operable(element, label, act) {
  element.setAttribute('tabindex', 0);
  element.setAttribute('role', 'button');
  element.setAttribute('aria-label', label);
  element.style.cursor = 'pointer';
  element.addEventListener('click', act);
  element.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
}
function graphSheet() {
  const {width, height, boxes, wires} = view.graph.drawing, boxWidth = 150, boxHeight = 30;
  const sheet = $('div', {class: 'sheet'}, $('h2', {}, 'Graph'), $('p', {}, 'Operations after the graph passes. Blue: memory; orange: matmul. A click shows an operation among the lines.'));
  if (!boxes.length) return sheet;
  const svg = svgNode('svg', {width, height, role: 'group', 'aria-label': 'graph'});
  for (const [from, to] of wires) {
    const x0 = boxes[from].x + boxWidth / 2, y0 = boxes[from].y + boxHeight, x1 = boxes[to].x + boxWidth / 2, y1 = boxes[to].y, bend = 17;
    svg.append(svgNode('path', {class: 'wire', d: `M${x0} ${y0} C ${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`}));
  }
  for (const box of boxes) {
    const node = view.nodes[box.node], group = svgNode('g', {class: 'node ' + box.kind});
    group.append(svgNode('rect', {class: 'box', x: box.x, y: box.y, width: boxWidth, height: boxHeight, rx: 4}),
                 svgNode('text', {x: box.x + 6, y: box.y + 13}, '%' + box.node + ' ' + node.op),
                 svgNode('text', {class: 'faint', x: box.x + 6, y: box.y + 25}, box.result));
    operable(group, node.op + ' ' + box.result, () => jump('graph', view.graph.of.indexOf(box.node)));
    svg.append(group);
  }
  sheet.append(figure('graph', svg));
  return sheet;
}
/** Register, lane and warp of an element, from the digits of its coordinates. */
function placeOf(layout, at) {
  const place = [0, 0, 0];
  layout.axes.forEach((factors, axis) => {
    let rest = at[axis];
    for (let i = factors.length; i-- > 0;) { const [kind, size, unit] = factors[i]; place[kind] += rest % size * unit; rest = Math.floor(rest / size); }
  });
  return place;
}
function layoutPicture(layout) {
  const shape = layout.shape, rank = shape.length, rows = rank > 1 ? shape[rank - 2] : 1, columns = rank ? shape[rank - 1] : 1;
  const most = 64, r = Math.min(rows, most), c = Math.min(columns, most), cell = Math.max(10, Math.min(30, Math.floor(960 / c)));
  const svg = svgNode('svg', {width: c * cell + 2, height: r * cell + 2, role: 'img', 'aria-label': 'layout of ' + layout.name});
  for (let i = 0; i < r; ++i)
    for (let j = 0; j < c; ++j) {
      const at = shape.map(() => 0);
      if (rank > 1) at[rank - 2] = i;
      if (rank) at[rank - 1] = j;
      const [register, lane, warp] = placeOf(layout, at);
      const box = svgNode('rect', {x: j * cell + 1, y: i * cell + 1, width: cell, height: cell, fill: 'hsl(' + warp * 67 % 360 + ' 60% ' + (45 + lane * 1.1) + '%)', stroke: '#0003'});
      box.append(svgNode('title', {}, '(' + at.join(', ') + '): warp ' + warp + ', lane ' + lane + ', register ' + register));
      svg.append(box);
      if (cell >= 22) {
        const text = svgNode('text', {x: j * cell + 3, y: i * cell + cell - 8}, 'T' + (warp * 32 + lane));
        text.style.fill = '#000'; text.style.fontSize = '9px';
        svg.append(text);
      }
    }
  return svg;
}
function layoutSheet() {
  const sheet = $('div', {class: 'sheet'}, $('h2', {}, 'Layouts'), $('p', {}, 'Which thread holds which element, at most 64 x 64 of a tile. A color is a warp, its shade a lane; the tooltip has the register.'));
  const size = (layout) => layout.shape.reduce((product, extent) => product * extent, 1);
  const bySize = view.layouts.map((layout, i) => i).sort((a, b) => size(view.layouts[b]) - size(view.layouts[a]) || a - b);
  const choose = $('select', {'aria-label': 'Value'}, ...bySize.map((i) => [view.layouts[i], i]).map(([layout, i]) => $('option', {value: i}, layout.name + ': ' + layout.type + '[' + layout.shape.join(',') + ']')));
  const place = $('div');
  const show = () => {
    const layout = view.layouts[Number(choose.value)];
    if (layout) place.replaceChildren($('p', {}, layout.registers + ' registers of a thread in ' + layout.storage + '; layout: ' + layout.text), figure('layout-' + layout.name, layoutPicture(layout)));
  };
  choose.onchange = show;
  if (!view.layouts.length) return sheet.append($('p', {}, 'No tile is spread over threads.')), sheet;
  sheet.append(choose, place);
  show();
  return sheet;
}
function memorySheet() {
  const sheet = $('div', {class: 'sheet'}, $('h2', {}, 'Shared memory over the kernel\'s life'));
  const pieces = view.shared;
  if (!pieces.length) return sheet.append($('p', {}, 'The kernel has no tiles in shared memory.')), sheet;
  const end = Math.max(...pieces.map((p) => p.last)) + 1, top = Math.max(...pieces.map((p) => p.offset + p.bytes)), width = 900, height = 320, left = 90;
  const svg = svgNode('svg', {width: width + left + 10, height: height + 40, role: 'img', 'aria-label': 'shared memory'});
  const x = (step) => left + step / end * width, y = (byte) => height - byte / top * height + 10;
  pieces.forEach((piece, i) => {
    const box = svgNode('rect', {x: x(piece.first), y: y(piece.offset + piece.bytes), width: Math.max(2, x(piece.last + 1) - x(piece.first)), height: Math.max(2, y(piece.offset) - y(piece.offset + piece.bytes)), fill: 'hsl(' + i * 67 % 360 + ' 55% 60%)', stroke: '#0006'});
    box.append(svgNode('title', {}, piece.name + ': ' + piece.bytes + ' bytes at ' + piece.offset + ', steps ' + piece.first + ' to ' + piece.last));
    const text = svgNode('text', {x: x(piece.first) + 3, y: Math.min(y(piece.offset) - 3, y(piece.offset + piece.bytes) + 12)}, piece.name);
    text.style.fill = '#000';
    svg.append(box);
    if (y(piece.offset) - y(piece.offset + piece.bytes) > 13) svg.append(text);
  });
  for (const byte of [0, top / 2, top]) svg.append(svgNode('text', {x: 4, y: y(byte) + 4}, Math.round(byte) + ' B'));
  svg.append(svgNode('text', {x: left, y: height + 30, class: 'faint'}, 'step 0'), svgNode('text', {x: left + width - 60, y: height + 30, class: 'faint'}, 'step ' + (end - 1)));
  sheet.append(figure('shared-memory', svg), table(['', 'bytes', 'offset', 'from step', 'to step'], pieces.map((p) => [p.name, p.bytes, p.offset, p.first, p.last])));
  return sheet;
}
function rolesSheet() {
  const sheet = $('div', {class: 'sheet'}, $('h2', {}, 'Roles and pipelines'), $('p', {}, 'The steps of each role in order, and the stages that they wait for (empty circles) and pass on (full ones). Time runs downwards; it is not to scale. A click shows a step among the lines.'));
  const roles = view.roles, column = 320, line = 16;
  if (!roles.length) return sheet.append($('p', {}, 'No plan was recorded.')), sheet;
  const height = Math.max(...roles.map((role) => role.steps.length)) * line + 60;
  const svg = svgNode('svg', {width: roles.length * column, height, role: 'img', 'aria-label': 'roles'});
  const first = new Map();
  roles.forEach((role, i) => {
    const x = i * column + 6;
    svg.append(svgNode('rect', {x, y: 2, width: column - 12, height: 30, class: 'box'}), svgNode('text', {x: x + 8, y: 21}, role.title));
    role.steps.forEach((step, j) => {
      const y = 50 + j * line;
      const text = svgNode('text', {x: x + 18 + step.depth * 10, y}, step.text.length > 44 - step.depth ? step.text.slice(0, 43 - step.depth) + '…' : step.text);
      text.append(svgNode('title', {}, step.text));
      operable(text, 'step ' + step.text, () => jump('plan', view.plan.of.indexOf(step.step)));
      svg.append(text);
      if (!step.waits && !step.signals) return;
      const key = step.waits || step.signals, own = svgNode('circle', {cx: x + 8, cy: y - 4, r: 4, class: 'box'});
      own.style.fill = step.signals ? 'hsl(' + hueOf(key) + ' 60% 50%)' : 'none';
      own.style.stroke = 'hsl(' + hueOf(key) + ' 60% 50%)';
      svg.append(own);
      const other = (step.waits ? 'p' : 'w') + key, known = first.get(other);
      if (known && known.i !== i) {
        const wire = svgNode('path', {class: 'wire', d: 'M' + known.x + ' ' + known.y + ' C ' + (known.x + 60) + ' ' + known.y + ' ' + (x - 60) + ' ' + (y - 4) + ' ' + (x + 4) + ' ' + (y - 4)});
        wire.style.stroke = 'hsl(' + hueOf(key) + ' 60% 50%)';
        svg.append(wire);
      }
      const mine = (step.waits ? 'w' : 'p') + key;
      if (!first.has(mine)) first.set(mine, {x: x + 12, y: y - 4, i});
    });
  });
  sheet.append(figure('roles', svg));
  return sheet;
}
const hueOf = (text) => [...text].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 360, 7);

// ---- tabs

const tabs = {code: ['Code', null], overview: ['Overview', overview], graph: ['Graph', graphSheet], layouts: ['Layouts', layoutSheet], memory: ['Shared memory', memorySheet], roles: ['Roles', rolesSheet]};
let tab = 'code';
function openTab(name) {
  tab = name;
  const main = document.getElementById('main');
  for (const button of document.getElementById('tabs').children) button.setAttribute('aria-selected', button.dataset.tab === name);
  main.className = name === 'code' ? 'code' : '';
  if (name === 'code') main.replaceChildren(paneBar, paneRow), showPanes();
  else main.replaceChildren(tabs[name][1]());
}
const paneRow = $('div', {class: 'panes'}), paneBar = $('div', {class: 'bar', role: 'group', 'aria-label': 'Panes'});
for (const [kind, title] of kinds) {
  const button = $('button', {'data-kind': kind, 'aria-pressed': 'false'}, title);
  button.onclick = () => {
    if (narrow()) shown = new Set([kind]);
    else if (shown.has(kind) && shown.size > 1) shown.delete(kind); else shown.add(kind);
    showPanes();
  };
  paneBar.append(button);
}
function showPanes() {
  for (const button of paneBar.children) button.setAttribute('aria-pressed', shown.has(button.dataset.kind));
  paneRow.replaceChildren(...kinds.filter(([kind]) => shown.has(kind)).map(([kind]) => panes[kind].element));
  if (!shown.has(focused.kind)) focused = panes[[...shown][0]];
  for (const kind of shown) panes[kind].drawn = '', panes[kind].draw();
  marks(selected);
}
const passSelect = $('select', {'aria-label': 'Plan after the pass'}), changes = $('button', {'aria-pressed': 'false', title: 'What the pass changed'}, 'changes');
passSelect.onchange = () => showPass(Number(passSelect.value));
changes.onclick = () => { shows_changes = !shows_changes; changes.setAttribute('aria-pressed', shows_changes); showPass(pass); };
function showPass(i) {
  if (passSelect.disabled) return;
  if (selected?.pane === panes.plan) selected = null;
  pass = Math.max(0, Math.min(view.plan.passes.length - 1, i));
  passSelect.value = pass;
  passSelect.title = view.plan.passes[pass]?.what || '';
  panes.plan.refresh();
  const count = (style) => panes.plan.lines().filter((line) => line.style === style).length;
  if (shows_changes) status('the pass ' + view.plan.passes[pass].name + ' added ' + count('plus') + ' lines and removed ' + count('minus'));
  marks(selected);
}
panes.plan.tools.append(passSelect, changes);

function openView(i) {
  view = DATA.views[i];
  document.getElementById('title').textContent = document.title = view.kernel + ' for ' + view.arch;
  selected = hovered = null;
  pass = view.plan.passes.length - 1;
  passSelect.replaceChildren(...view.plan.passes.map((one, number) => $('option', {value: number}, one.name + (one.lines ? '' : ' (no change)'))));
  passSelect.value = pass;
  passSelect.disabled = changes.disabled = compared >= 0 || !view.plan.passes.length;
  for (const pane of Object.values(panes)) {
    pane.cache = null; pane.drawn = ''; pane.hits = new Set();
    pane.note.textContent = view[pane.kind].note || '';
  }
  openTab(tab);
}

// ---- keys, search, deep links

function search(text) {
  const lines = focused.lines();
  focused.hits = new Set(text ? lines.flatMap((line, i) => line.text.toLowerCase().includes(text.toLowerCase()) ? [i] : []) : []);
  const hit = [...focused.hits].find((i) => i >= Math.max(0, focused.at)) ?? [...focused.hits][0];
  if (hit !== undefined) select(focused, hit); else focused.mark();
  status(focused.hits.size + ' line(s) of ' + focused.title + ' contain "' + text + '"');
}
function nextHit(by) {
  if (!focused.hits.size) return;
  const hits = [...focused.hits], from = focused.at;
  const next = by > 0 ? hits.find((i) => i > from) ?? hits[0] : hits.findLast((i) => i < from) ?? hits[hits.length - 1];
  select(focused, next);
}
const searchBox = document.getElementById('search');
searchBox.addEventListener('input', () => search(searchBox.value));
searchBox.addEventListener('keydown', (event) => { if (event.key === 'Enter') nextHit(event.shiftKey ? -1 : 1), event.preventDefault(); });
document.addEventListener('focusin', (event) => { const kind = event.target.closest?.('.pane')?.dataset.pane; if (kind) focused = panes[kind]; });
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') { searchBox.value = ''; searchBox.blur(); selected = null; for (const pane of Object.values(panes)) pane.hits = new Set(); marks(null); history.replaceState(null, '', ' '); return; }
  if (event.target.closest?.('select, input, button') || event.ctrlKey || event.metaKey || event.altKey || tab !== 'code') return;
  const move = (by) => select(focused, Math.max(0, Math.min(focused.count() - 1, (selected?.pane === focused ? selected.index : -1) + by)));
  const beside = (by) => { const list = kinds.map(([kind]) => kind).filter((kind) => shown.has(kind)); focused = panes[list[(list.indexOf(focused.kind) + by + list.length) % list.length]]; focused.rows.focus(); };
  const keys = {j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), h: () => beside(-1), l: () => beside(1), n: () => showPass(pass + 1), p: () => showPass(pass - 1), '/': () => searchBox.focus()};
  if (keys[event.key]) keys[event.key](), event.preventDefault();
});
function follow() {
  const [kind, line] = location.hash.slice(1).split(':');
  if (Object.hasOwn(tabs, kind) && !line) return openTab(kind);
  if (Object.hasOwn(panes, kind) && /^\d+$/.test(line) && Number(line) > 0 && Number(line) <= panes[kind].count()) jump(kind, Number(line) - 1);
}
addEventListener('hashchange', follow);
addEventListener('resize', () => { for (const kind of shown) panes[kind].draw(); });
document.getElementById('theme').onclick = () => { setTheme((document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark'); };
function setTheme(name) { document.documentElement.dataset.theme = name; }

for (const [name, [title]] of Object.entries(tabs)) {
  const button = $('button', {role: 'tab', 'data-tab': name}, title);
  button.setAttribute('aria-controls', 'main');
  button.onclick = () => { openTab(name); history.replaceState(null, '', '#' + name); };
  button.addEventListener('keydown', (event) => {
    const other = event.key === 'ArrowRight' ? button.nextElementSibling : event.key === 'ArrowLeft' ? button.previousElementSibling : null;
    if (other) other.click(), other.focus();
  });
  document.getElementById('tabs').append(button);
}
const views = document.getElementById('view');
if (DATA.views.length > 1) {
  views.hidden = false;
  views.append(...DATA.views.map((one, i) => $('option', {value: i}, one.label)));
  views.onchange = () => openView(Number(views.value));
  const compare = document.getElementById('compare');
  compare.hidden = false;
  compare.append($('option', {value: -1}, 'compare with ...'), ...DATA.views.map((one, i) => $('option', {value: i}, 'changes from ' + one.label)));
  compare.onchange = () => { compared = Number(compare.value); openView(Number(views.value)); };
}
openView(0);
follow();
