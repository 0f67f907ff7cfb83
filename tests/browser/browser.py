"""Drives a headless Chromium over its debugging pipe (Chrome DevTools Protocol), with the standard library alone."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')


def find():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page of a headless browser. Messages of its console and exceptions are kept in `errors`."""

    def __init__(self, width=1400, height=900, dark=False):
        self.folder = tempfile.TemporaryDirectory(prefix='tessera-browser-', ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        os.dup2(to_browser, 103)
        os.dup2(from_browser, 104)
        command = (f'exec 3<&103 4>&104 103<&- 104>&-; exec {find()} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage '
                   f'--hide-scrollbars --remote-debugging-pipe --user-data-dir={self.folder.name} --window-size={width},{height} about:blank')
        self.process = subprocess.Popen(['bash', '-c', command], pass_fds=(103, 104), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for descriptor in (to_browser, from_browser, 103, 104):
            os.close(descriptor)
        self.buffer, self.number, self.events, self.errors, self.session = b'', 0, [], [], None
        target = next(one for one in self.call('Target.getTargets')['targetInfos'] if one['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self.call(domain + '.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        if dark:
            self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])

    def read(self, seconds=60):
        deadline = time.monotonic() + seconds
        while b'\0' not in self.buffer:
            if time.monotonic() > deadline:
                raise TimeoutError('the browser does not answer')
            if not select.select([self.into], [], [], 1)[0]:
                continue
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise RuntimeError('the browser has ended')
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b'\0')
        message = json.loads(text)
        method, content = message.get('method'), message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            details = content['exceptionDetails']
            self.errors.append(details.get('exception', {}).get('description') or details['text'])
        if method == 'Runtime.consoleAPICalled' and content['type'] in ('error', 'warning'):
            self.errors.append(str([one.get('value') for one in content['args']]))
        if method == 'Log.entryAdded' and content['entry']['level'] in ('error', 'warning'):
            self.errors.append(content['entry']['text'])
        if method:
            self.events.append(method)
        return message

    def call(self, method, **arguments):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': arguments}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.read()
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer['result']

    def open(self, address):
        self.events.clear()
        self.call('Page.navigate', url=address)
        while 'Page.loadEventFired' not in self.events:
            self.read()

    def run(self, script):
        """The value of a JavaScript expression; a promise is awaited."""
        result = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(result['exceptionDetails'].get('exception', {}).get('description', script))
        return result['result'].get('value')

    def screenshot(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
