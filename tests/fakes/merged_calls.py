"""Runs two functions on two threads, one step at a time, in a given order of their steps."""

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

Step = Callable[[], None]


def step_orders(first_count: int, second_count: int) -> Iterator[tuple[int, ...]]:
    """Yields every order in which the steps of two functions can follow each other."""
    count = first_count + second_count
    for places in combinations(range(count), first_count):
        yield tuple(0 if place in places else 1 for place in range(count))


class _Turns:
    """Lets one thread run at a time: that whose number is next in the order."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order = list(order)
        self._changed = threading.Condition()
        self._running: int | None = None
        self._ended = set[int]()

    def take(self, number: int) -> None:
        """Ends the thread's last step, and waits until its next step may begin."""
        with self._changed:
            self._release(number)
            self._changed.wait_for(lambda: self._running is None and self._is_next(number))
            if self._order:
                self._order.pop(0)
            self._running = number

    def end(self, number: int) -> None:
        """Ends the thread's last step; the order's other steps of the thread are left out."""
        with self._changed:
            self._ended.add(number)
            self._release(number)

    def _release(self, number: int) -> None:
        if self._running == number:
            self._running = None
        self._changed.notify_all()

    def _is_next(self, number: int) -> bool:
        while self._order and self._order[0] in self._ended:
            self._order.pop(0)
        return not self._order or self._order[0] == number


def run_merged(order: Sequence[int], *calls: Callable[[Step], None]) -> None:
    """Runs all calls to their end. `order` has the number of the call that does the next step.

    Each call gets a function that it must call before each of its steps, also the first. Steps that
    are not in `order` follow at its end. Raises what a call raised.
    """
    turns, errors = _Turns(order), list[BaseException]()

    def run(number: int, call: Callable[[Step], None]) -> None:
        try:
            call(lambda: turns.take(number))
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)
        finally:
            turns.end(number)

    threads = [
        threading.Thread(target=run, args=(number, call)) for number, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
