"""The states of a board: which items each device has begun, where it waits, and which moves there are."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from attrs import define, field, frozen

from shape_inference import refuse

from ..checking.scenarios import ALL, EventKey, SimulatedEvent
from .items import Board, Item

MOST_STATES = 3000

Place: TypeAlias = tuple[
    int, int, int
]  # the items begun, as bits; the item at which the device waits, or -1; its event
State: TypeAlias = tuple[Place, ...]
Move: TypeAlias = tuple[int, int]  # a device, and the item that it begins


@frozen
class Wait:
    """Where a device waits: the item, what it waits for, and the devices that are to come."""

    device: int
    item: int
    event: SimulatedEvent
    missing: tuple[int, ...]


@define
class States:
    """All states that moves reach from the first, in the order of their discovery.

    After a move every device goes on as far as it can: which one goes first makes no difference, since an event that is
    possible stays possible.
    """

    board: Board
    orders: list[tuple[tuple[int, ...], ...]] = field(factory=list)
    states: list[State] = field(factory=list)
    moves: list[dict[Move, int]] = field(factory=list)

    def explore(self) -> States:
        """Find all states; raises too_many_states where there are more than MOST_STATES."""
        start = self._settled(tuple((0, -1, 0) for _ in self.board.items))
        known = {self._key(start, ()): 0}
        self.states, self.moves, self.orders = [start], [{}], [()]
        waiting = deque([0])
        while waiting:
            number = waiting.popleft()
            for move in self._legal(self.states[number], self.orders[number]):
                after, order = self._after(number, move)
                key = self._key(after, order)
                if key not in known:
                    known[key] = len(self.states)
                    self._enter(after, order)
                    waiting.append(known[key])
                self.moves[number][move] = known[key]
        return self

    def _enter(self, state: State, order: tuple[tuple[int, ...], ...]) -> None:
        if len(self.states) == MOST_STATES:
            refuse(
                "too_many_states", f"the program has more than {MOST_STATES} states, too many for a page", "fewer ops"
            )
        self.states.append(state)
        self.moves.append({})
        self.orders.append(order)

    def _key(self, state: State, order: tuple[tuple[int, ...], ...]) -> tuple[State, tuple[tuple[int, ...], ...]]:
        return state, order

    def _legal(self, state: State, order: tuple[tuple[int, ...], ...]) -> Iterator[Move]:
        """The items that devices may begin; in a common order a device takes what another has begun at its place."""
        for (device, items), (begun, at, _) in zip(self.board.items.items(), state, strict=True):
            if at >= 0:
                continue
            ready = [n for n, item in enumerate(items) if not begun >> n & 1 and item.before & ~begun == 0]
            common = order[0] if order else ()
            if self.board.is_common_order and begun.bit_count() < len(common):
                ready = [n for n in ready if n == common[begun.bit_count()]]
            yield from ((device, n) for n in ready)

    def _after(self, number: int, move: Move) -> tuple[State, tuple[tuple[int, ...], ...]]:
        device, item = move
        state, order = self.states[number], self.orders[number]
        index = [*self.board.items].index(device)
        begun = state[index][0]
        if self.board.is_common_order:
            common = order[0] if order else ()
            order = ((*common, item),) if begun.bit_count() == len(common) else order
        moved = (*state[:index], (begun | 1 << item, item, 0), *state[index + 1 :])
        return self._settled(moved), order

    def _settled(self, state: State) -> State:
        """The state after every device has gone on as far as it can."""
        done = self._counts(state)
        places = [list(place) for place in state]
        moved = True
        while moved:
            moved = False
            for place, (device, items) in zip(places, self.board.items.items(), strict=True):
                while place[1] >= 0 and self._goes_on(place, items[place[1]], device, done):
                    moved = True
        return tuple((begun, at, event) for begun, at, event in places)

    def _goes_on(self, place: list[int], item: Item, device: int, done: Mapping[int, Counter[EventKey]]) -> bool:
        """Advance a device by one event, or end its item; False where it waits."""
        if place[2] == len(item.events):
            place[1], place[2] = -1, 0
            return True
        event = item.events[place[2]]
        if event.is_possible(done):
            event.happen(device, done)
            place[2] += 1
            return True
        return False

    def _counts(self, state: State) -> dict[int, Counter[EventKey]]:
        """The events that have happened, by device."""
        done: dict[int, Counter[EventKey]] = {device: Counter() for device in (ALL, *self.board.items)}
        for (device, items), (begun, at, position) in zip(self.board.items.items(), state, strict=True):
            for number, item in enumerate(items):
                if begun >> number & 1:
                    for event in item.events[: position if number == at else None]:
                        event.happen(device, done)
        return done

    def is_end(self, number: int) -> bool:
        """Whether every device has ended."""
        return all(
            at < 0 and begun == (1 << len(items)) - 1
            for items, (begun, at, _) in zip(self.board.items.values(), self.states[number], strict=True)
        )

    def waits(self, number: int) -> Iterator[Wait]:
        """The devices that wait in a state, and for whom."""
        state = self.states[number]
        done = self._counts(state)
        for (device, items), (_, at, position) in zip(self.board.items.items(), state, strict=True):
            if at >= 0:
                event = items[at].events[position]
                yield Wait(device, at, event, tuple(_missing(event, done)))


def _missing(event: SimulatedEvent, done: Mapping[int, Counter[EventKey]]) -> Iterator[int]:
    """The devices whose events are still to come."""
    for device, key, needed in event.needs:
        if device != ALL:
            if done[device][key] < needed:
                yield device
        else:
            kind, identity, turn = key
            yield from (each for each in event.members if done[each][kind, identity] < turn)
