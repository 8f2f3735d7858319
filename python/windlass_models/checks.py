"""Checks that configurations have in common."""


def require_positive(config, *names):
    for name in names:
        if getattr(config, name) < 1:
            raise ValueError(f'{name} is {getattr(config, name)}: it must be at least 1')
