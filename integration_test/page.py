"""An HTML page, taken apart."""

import html.parser

# Elements without an end.
EMPTY = {'meta', 'rect', 'line', 'polyline', 'polygon', 'circle', 'br', 'path'}


class Page(html.parser.HTMLParser):
    """The elements of a page; those that are not closed in order are problems."""

    def __init__(self, text):
        super().__init__()
        self.problems, self.open, self.elements, self.texts = [], [], [], []
        self.feed(text)
        self.problems += [f'<{name}> is not closed' for name, _ in self.open]

    def handle_starttag(self, name, attributes):
        element = (name, dict(attributes), [])
        self.elements.append((element, [each[0] for each in self.open]))
        if name not in EMPTY:
            self.open.append((name, element))

    def handle_startendtag(self, name, attributes):
        self.elements.append(((name, dict(attributes), []), [each[0] for each in self.open]))

    def handle_endtag(self, name):
        if not self.open or self.open[-1][0] != name:
            self.problems.append(f'</{name}> closes {self.open[-1][0] if self.open else "nothing"}')
        else:
            self.open.pop()

    def handle_data(self, text):
        self.texts.append(text)
        for _, element in self.open:
            element[2].append(text)

    @property
    def tags(self):
        return [name for (name, _, _), _ in self.elements]

    @property
    def attributes(self):
        return {name for (_, attributes, _), _ in self.elements for name in attributes}

    @property
    def text(self):
        return ''.join(self.texts)

    def find(self, name):
        """Returns attributes, words and the names of the elements around it, for each element of a name."""
        return [(attributes, ''.join(texts).strip(), above) for (each, attributes, texts), above in self.elements if each == name]


def read_page(path):
    """Returns the page of a file, all elements of which are closed in order."""
    page = Page(path.read_text())
    assert not page.problems, page.problems
    return page
