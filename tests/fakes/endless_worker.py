"""A worker whose jobs misbehave."""

import os

from nel.scoring.math_pool import serve


def endless():
    while True:
        pass


def eat():
    return len(bytearray(1 << 40))


def leave():
    os._exit(3)


if __name__ == "__main__":
    serve(
        {"endless": endless, "eat": eat, "leave": leave, "pid": os.getpid, "echo": lambda value: value}, memory=1 << 30
    )
