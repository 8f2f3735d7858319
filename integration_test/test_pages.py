"""The pages of runs and plans, for everybody: a structure that screen readers follow, pictures with a name, colours that differ enough from
what is behind them, everything that scrolls reached by keyboard; and small for long runs."""

import re

import common
from page import read_page

# Levels of headings.
HEADINGS = {f'h{level}': level for level in range(1, 7)}
# What browsers draw pages on, by `color-scheme: light dark`.
BEHIND = {'light': '#ffffff', 'dark': '#1c1b22'}
LEAST_CONTRAST = 3  # of parts of pictures: WCAG 2.2, 1.4.11


def luminance(colour):
    """Of a colour such as #1f6fb4, by WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else ''.join(2 * digit for digit in colour[1:])
    parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(first, second):
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


class PagesTest(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt()

    def check(self, path):
        text, page = path.read_text(), read_page(path)
        self.assertEqual([attributes.get('lang') for attributes, _, _ in page.find('html')], ['en'])
        (title,) = [words for _, words, above in page.find('title') if 'svg' not in above]
        self.assertTrue(title)
        (viewport,) = [attributes for attributes, _, _ in page.find('meta') if attributes.get('name') == 'viewport']
        self.assertEqual(viewport['content'], 'width=device-width, initial-scale=1')
        # One heading of the first level, and no level left out behind it.
        levels = [HEADINGS[name] for (name, _, _), _ in page.elements if name in HEADINGS]
        self.assertEqual((levels[0], levels.count(1)), (1, 1))
        self.assertTrue(all(after <= before + 1 for before, after in zip(levels, levels[1:])), levels)
        # Pictures have a name, which is read instead of their parts.
        pictures = page.find('svg')
        self.assertTrue(pictures)
        names = [words for _, words, above in page.find('title') if 'svg' in above]
        self.assertEqual(len(names), len(pictures))
        self.assertTrue(all(names))
        self.assertTrue(all(attributes.get('role') == 'img' for attributes, _, _ in pictures))
        # Who has no mouse scrolls by keyboard what is wider than the screen.
        wide = [attributes for (_, attributes, _), _ in page.elements if 'scroll' in attributes.get('class', '').split()]
        self.assertTrue(all(attributes.get('tabindex') == '0' for attributes in wide))
        self.assertTrue(all('th' in text for text in re.findall(r'<table>.*?</table>', text, re.S) if '<tr>' in text))
        light, dark = (dict(re.findall(r'--(c\d): (#[0-9a-f]{3,6})', part)) for part in text.split('prefers-color-scheme: dark')[:2])
        self.assertEqual(set(light), set(dark))
        for scheme, colours in (('light', light), ('dark', dark)):
            for name, colour in colours.items():
                self.assertGreaterEqual(contrast(colour, BEHIND[scheme]), LEAST_CONTRAST, f'{scheme} {name} {colour}')
        # Nothing is loaded and nothing runs.
        self.assertIn("default-src 'none'", text)
        self.assertFalse(page.find('script') + page.find('img') + page.find('link') + page.find('a'))

    def test_run_and_comparison(self):
        batches = self.batches(self.model, 4)
        for name, flags in (('first', ['--profile', '-n', 2]), ('second', ['--lr', '1e-2'])):
            self.succeed('train', self.model, '--data', batches, '--steps', 4, '-o', self.folder / name, '-q', *flags)
        page = self.folder / 'first' / 'report.html'
        self.succeed('report', self.folder / 'first')
        self.check(page)
        self.assertIn('What each stream does', page.read_text())
        self.succeed('plan', self.model, '--cluster', 'cpu:2', '-o', self.folder / 'plan.json')
        self.succeed('simulate', self.model, '--plan', self.folder / 'plan.json', '-o', self.folder / 'predicted.json')
        self.succeed('report', self.folder / 'first', '--predicted', self.folder / 'predicted.json')
        self.check(page)
        self.assertIn('>predicted, compute<', page.read_text())
        both = self.folder / 'both.html'
        self.succeed('report', self.folder / 'first', self.folder / 'second', '-o', both)
        self.check(both)
        for words in ([self.folder / 'second', '--predicted', self.folder / 'none.json'],
                      [self.folder / 'first', self.folder / 'second', '-o', both, '--predicted', self.folder / 'predicted.json']):
            self.assertNotEqual(common.windlass('report', *words).code, 0)

    def test_plan(self):
        page = self.folder / 'plan.html'
        self.succeed('plan', self.model, '--cluster', 'h100:2x4', '-o', self.folder / 'plan.json', '--html', page)
        self.check(page)

    def test_long_run(self):
        run = common.long_run(self.folder)
        done = self.succeed('report', run)
        page = run / 'report.html'
        print(f'{page.stat().st_size} bytes for 100,000 steps, in {done.processor_seconds:.2f} s of processor', flush=True)
        self.assertLess(page.stat().st_size, 3 << 20)
        self.check(page)


common.main()
