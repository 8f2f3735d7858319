"""A headless Chromium, driven over a pipe by its DevTools protocol."""

import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')


class Browser:
    """One page. Use it in a `with` statement."""

    def __init__(self, width=1200, height=900, dark=False):
        self.folder = tempfile.TemporaryDirectory(prefix='windlass-browser-', ignore_cleanup_errors=True)  # its children end a little later
        theirs_in, self.to = os.pipe()
        self.of, theirs_out = os.pipe()

        def hand_over():
            # Chromium reads from 3 and writes to 4; both ends may be among these already.
            copies = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', f'--window-size={width},{height}',
             f'--user-data-dir={self.folder.name}', f'--blink-settings=preferredColorScheme={0 if dark else 1}', 'about:blank'],
            preexec_fn=hand_over, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.session = 0, b'', None
        page = next(each for each in self.call('Target.getTargets')['targetInfos'] if each['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=page['targetId'], flatten=True)['sessionId']

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.of)
        self.folder.cleanup()

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self.number += 1
        text = {'id': self.number, 'method': method, 'params': parameters, **({'sessionId': self.session} if self.session else {})}
        os.write(self.to, json.dumps(text).encode() + b'\0')
        end = time.monotonic() + 60
        while True:
            while b'\0' not in self.rest:
                if time.monotonic() > end or not select.select([self.of], [], [], 60)[0]:
                    raise TimeoutError(f'the browser does not answer {method}')
                self.rest += os.read(self.of, 1 << 20)
            one, self.rest = self.rest.split(b'\0', 1)
            answer = json.loads(one)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]["message"]}')
                return answer['result']

    def open(self, page):
        self.call('Page.navigate', url=pathlib.Path(page).resolve().as_uri())
        end = time.monotonic() + 60
        while self.evaluate('document.readyState + location.protocol') != 'completefile:':
            if time.monotonic() > end:
                raise TimeoutError(f'{page} is not drawn')
            time.sleep(0.05)

    def evaluate(self, expression):
        """Returns the value of an expression of JavaScript, awaited where it is a promise."""
        done = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in done:
            raise RuntimeError(done['exceptionDetails'].get('exception', {}).get('description', done['exceptionDetails']['text']))
        return done['result'].get('value')

    def press(self, key, code):
        for kind in ('rawKeyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code)
