"""The pages of runs and plans in a browser: axe-core finds nothing on any of them, on small and large screens, light and dark; the keyboard
reaches all that scrolls, in order, and scrolls it; and a run of 100,000 steps is drawn. Skipped where there is no Chromium."""

import os
import pathlib
import subprocess
import sys
import time
import unittest

import browser
import common

PACKAGES = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build')) / 'axe'
VIOLATIONS = '''axe.run(document).then(found => found.violations.map(each =>
    each.id + ': ' + each.help + ': ' + each.nodes.map(node => node.html.slice(0, 150)).join(' | ')))'''
# What can have the focus, by what is in it, and whether it is wider than it looks.
STOPS = '''[...document.querySelectorAll('[tabindex], a[href], button, summary, input')].map(each =>
    [each.textContent.slice(0, 60), each.scrollWidth > each.clientWidth])'''
FOCUS = '''(each => [each.textContent.slice(0, 60), each.scrollLeft, getComputedStyle(each).outlineStyle])(document.activeElement)'''
TAB, RIGHT = ('Tab', 9), ('ArrowRight', 39)


def axe():
    """Returns the text of axe-core's script; it is fetched once."""
    script = PACKAGES / 'axe_playwright_python' / 'axe.min.js'
    if not script.exists():
        subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--no-deps', '--require-hashes', '--target', PACKAGES,
                        '-r', common.ROOT / 'integration_test' / 'axe-requirements.txt'], check=True)
    return script.read_text()


@unittest.skipUnless(browser.CHROMIUM, 'needs chromium')
class BrowserTest(common.Case):
    def pages(self):
        model = self.small_gpt(layers=2)
        batches = self.batches(model, 4)
        for name, flags in (('first', ['--profile', '-n', 2]), ('second', ['--lr', '1e-2'])):
            self.succeed('train', model, '--data', batches, '--steps', 4, '-o', self.folder / name, '-q', *flags)
        self.succeed('report', self.folder / 'first')
        self.succeed('report', self.folder / 'first', self.folder / 'second', '-o', self.folder / 'both.html')
        self.succeed('plan', model, '--cluster', 'h100:2x4', '-o', self.folder / 'plan.json', '--html', self.folder / 'plan.html')
        return [self.folder / 'first' / 'report.html', self.folder / 'both.html', self.folder / 'plan.html']

    def test_nothing_is_in_the_way(self):
        script = axe()
        pages = self.pages()
        for width in (400, 2400):
            for dark in (False, True):
                with browser.Browser(width, 900, dark) as shown:
                    for page in pages:
                        with self.subTest(page.name, width=width, dark=dark):
                            shown.open(page)
                            shown.evaluate(script + '; 0')
                            self.assertEqual(shown.evaluate(VIOLATIONS), [])
        bad = self.folder / 'bad.html'
        bad.write_text('<html><body><img src="x.png"><p style="color: #ccc; background: #fff">pale</p></body></html>')
        with browser.Browser() as shown:
            shown.open(bad)
            shown.evaluate(script + '; 0')
            self.assertLessEqual({'image-alt', 'color-contrast', 'html-has-lang'}, {each.split(':')[0] for each in shown.evaluate(VIOLATIONS)})

    def test_keyboard(self):
        for page in self.pages():
            with self.subTest(page.name), browser.Browser(400, 900) as shown:
                shown.open(page)
                stops = shown.evaluate(STOPS)
                self.assertTrue(any(is_wide for _, is_wide in stops))
                for text, is_wide in stops:
                    shown.press(*TAB)
                    found, before, outline = shown.evaluate(FOCUS)
                    self.assertEqual(found, text)
                    self.assertNotEqual(outline, 'none')
                    if is_wide:
                        shown.press(*RIGHT)
                        end = time.monotonic() + 10  # it scrolls smoothly
                        while shown.evaluate(FOCUS)[1] <= before and time.monotonic() < end:
                            time.sleep(0.02)
                        self.assertGreater(shown.evaluate(FOCUS)[1], before)

    def test_long_run(self):
        run = common.long_run(self.folder)
        self.succeed('report', run)
        with browser.Browser() as shown:
            shown.open(run / 'report.html')
            drawn = shown.evaluate('new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))')
            print(f'100,000 steps are drawn {drawn / 1000:.2f} s after the page was asked for', flush=True)
            self.assertGreater(shown.evaluate("document.querySelectorAll('svg').length"), 2)


common.main()
