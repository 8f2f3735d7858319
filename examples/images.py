#!/usr/bin/env python3
"""Writes a small set of images with labels, as docs/data.md trains on them.

    images.py FOLDER

Of each image of 16 by 16 pixels of noise, one quarter is brighter; the label says which. FOLDER gets train-0.npz and train-1.npz with 256
images each and test.npz with 64: `pixel_values` as bytes [images, height, width, channels], and `labels`.
"""

import pathlib
import sys

import numpy


def main(folder):
    random = numpy.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (('train-0', 256), ('train-1', 256), ('test', 64)):
        images = random.integers(0, 160, (count, 16, 16, 3), numpy.uint8)
        labels = random.integers(0, 4, count)
        for image, label in zip(images, labels):
            row, column = divmod(int(label), 2)
            image[8 * row:8 * row + 8, 8 * column:8 * column + 8] += 60
        numpy.savez(folder / f'{name}.npz', pixel_values=images, labels=labels)


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
