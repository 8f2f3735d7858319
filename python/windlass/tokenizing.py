"""From text to files of tokens."""

from __future__ import annotations

import json
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

# Documents, or characters, that are tokenized together, on all processors.
_MOST_DOCUMENTS, _MOST_CHARACTERS = 256, 1 << 24


def _read_lines(path: pathlib.Path, key: str) -> Iterator[str]:
    with path.open(encoding='utf-8') as lines:
        for number, line in enumerate(lines, 1):
            try:
                text = json.loads(line)[key]
            except (ValueError, TypeError, KeyError):
                text = None
            if not isinstance(text, str):
                raise ValueError(f'{path}, line {number}: expected a JSON object with a text under {key!r}')
            yield text


def _read_column(path: pathlib.Path, key: str) -> Iterator[str]:
    import pyarrow
    import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            if key not in table.schema_arrow.names:
                raise ValueError(f'{path} has no column {key!r}, but {", ".join(map(repr, table.schema_arrow.names))}')
            row = 0
            for batch in table.iter_batches(batch_size=_MOST_DOCUMENTS, columns=[key]):
                for text in batch.column(0).to_pylist():
                    if not isinstance(text, str):
                        raise ValueError(f'{path}, row {row}: column {key!r} has no text there')
                    yield text
                    row += 1
    except pyarrow.ArrowException as error:
        raise ValueError(f'{path} cannot be read: {error}') from error


def _read_texts(files: str | pathlib.Path | Iterable[str | pathlib.Path], key: str) -> Iterator[str]:
    """Yields the text of each file, of each line of a `.jsonl` file, or of each row of a `.parquet` file."""
    for path in map(pathlib.Path, [files] if isinstance(files, (str, pathlib.Path)) else files):
        if path.suffix == '.jsonl':
            yield from _read_lines(path, key)
        elif path.suffix == '.parquet':
            yield from _read_column(path, key)
        else:
            yield path.read_text(encoding='utf-8')


def _in_batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch, characters = [], 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if len(batch) == _MOST_DOCUMENTS or characters >= _MOST_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _load(tokenizer: Any) -> Any:
    """Returns the `tokenizers.Tokenizer` of a file, of a tokenizer of transformers, or itself."""
    if isinstance(tokenizer, (str, pathlib.Path)):
        from tokenizers import Tokenizer
        return Tokenizer.from_file(str(tokenizer))
    return getattr(tokenizer, 'backend_tokenizer', tokenizer)


def tokenize(files: str | pathlib.Path | Iterable[str | pathlib.Path] | None, tokenizer: Any, output: str | pathlib.Path, *,
             texts: Iterable[str] | None = None, end: str | None = None, key: str = 'text') -> int:
    """Writes the tokens of documents, one after the other, to `output`, an `.npy` file for `train`; returns their number.

    Each of `files` is a document, but each line of a `.jsonl` file, a JSON object with the text under `key`, is one of its own, and so is
    each row of a `.parquet` file, which has the texts in the column `key` (this needs the package pyarrow). `texts` are the documents
    themselves, as from a data set; `files` is None then. `tokenizer` is a `tokenizer.json`, or an object of the
    package tokenizers or of transformers. `end`, such as '<|endoftext|>', is the token that follows each document. Special tokens are
    not added. Tokens take 2 bytes where the vocabulary allows it, else 4. A document is read as a whole, but not all of them.
    """
    if (files is None) == (texts is None):
        raise ValueError('give either files or texts')
    output = pathlib.Path(output)
    if output.suffix != '.npy':
        raise ValueError(f'{output}: the name of a file of tokens ends in .npy')
    tokens = _load(tokenizer)
    border = [] if end is None else [tokens.token_to_id(end)]
    if border == [None]:
        raise ValueError(f'the tokenizer has no token {end!r}')
    kind = numpy.dtype('<u2' if tokens.get_vocab_size() <= 1 << 16 else '<u4')
    count = 0
    with tempfile.TemporaryFile(dir=output.parent) as values:
        for batch in _in_batches(texts if files is None else _read_texts(files, key)):
            for encoding in tokens.encode_batch(batch, add_special_tokens=False):
                ids = encoding.ids + border
                values.write(numpy.array(ids, kind).tobytes())
                count += len(ids)
        values.seek(0)
        # The header comes first, and holds the number.
        with output.open('wb') as out:
            numpy.lib.format.write_array_header_1_0(out, {'descr': kind.str, 'fortran_order': False, 'shape': (count,)})
            shutil.copyfileobj(values, out)
    return count
