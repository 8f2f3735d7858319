"""Files and flags that are wrong on purpose: each function yields cases, writing the files of a case just before it."""
