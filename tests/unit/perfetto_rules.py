"""What Perfetto's importer asks of a trace of track events, checked on its own classes of messages.

Rules of the TrackEvent format as its documentation and its `.proto` files state them, for traces of one sequence.
"""

from typing import Any, NamedTuple


class Seen(NamedTuple):
    """What a trace that keeps the rules holds."""

    tracks: int
    slices: int
    samples: int
    longest_ns: int


def check(data: bytes) -> Seen:
    """Return what a trace holds; raises `AssertionError` with the rule that it breaks."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace = protos.Trace.FromString(data)
    _no_unknown_fields(trace)
    packet_type = protos.TracePacket
    tracks: dict[int, Any] = {}
    event_names: set[int] = set()
    argument_names: set[int] = set()
    cleared = False
    events: list[tuple[int, int, Any]] = []
    for order, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == 1, "a packet belongs to no sequence"
        if packet.sequence_flags & packet_type.SEQ_INCREMENTAL_STATE_CLEARED:
            assert order == 0, "the state is cleared again, which forgets the names"
            cleared = True
        if packet.HasField("interned_data"):
            assert cleared, "names are interned before the state was cleared"
            _intern(event_names, packet.interned_data.event_names)
            _intern(argument_names, packet.interned_data.debug_annotation_names)
        if packet.HasField("track_descriptor"):
            _declare(tracks, packet.track_descriptor)
        if packet.HasField("track_event"):
            assert packet.HasField("timestamp"), "an event has no time"
            assert 0 <= packet.timestamp < 1 << 63, "an event's time is no int64"
            assert not packet.HasField("timestamp_clock_id"), "a clock of its own needs a snapshot"
            needs = packet.sequence_flags & packet_type.SEQ_NEEDS_INCREMENTAL_STATE
            _event(packet.track_event, tracks, event_names, argument_names, bool(needs and cleared))
            events.append((packet.timestamp, order, packet.track_event))
    return _play(sorted(events, key=lambda event: event[:2]), protos.TrackEvent, tracks)


def _no_unknown_fields(message: Any) -> None:
    """Look for fields that Perfetto does not know, in all messages."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    assert len(UnknownFieldSet(message)) == 0, f"unknown field in {type(message).__name__}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                _no_unknown_fields(part)


def _intern(known: set[int], entries: Any) -> None:
    for entry in entries:
        assert entry.iid > 0, "a name's number is 0, which stands for none"
        assert entry.iid not in known, "a name's number is given twice"
        assert entry.name, "a name is empty"
        known.add(entry.iid)


def _declare(tracks: dict[int, Any], track: Any) -> None:
    assert track.uuid > 0, "a track's number is 0, which stands for the default track"
    assert track.uuid not in tracks, "a track is declared twice"
    assert track.name, "a track has no name"
    if track.HasField("parent_uuid"):
        assert track.parent_uuid in tracks, "a track's parent is not declared"
        assert not tracks[track.parent_uuid].HasField("counter"), "a counter has children"
    # Tracks of one name below one parent are merged into one.
    siblings = {(other.parent_uuid, other.name) for other in tracks.values()}
    assert (track.parent_uuid, track.name) not in siblings, "two tracks of one parent have one name"
    assert not track.HasField("counter") or track.counter.unit_name, "a counter has no unit"
    tracks[track.uuid] = track


def _event(event: Any, tracks: dict[int, Any], names: set[int], arguments: set[int], has_state: bool) -> None:
    assert event.track_uuid in tracks, "an event is on a track that is not declared"
    is_counter = tracks[event.track_uuid].HasField("counter")
    if event.type == event.TYPE_COUNTER:
        assert is_counter, "a sample is on a track of slices"
        assert event.HasField("double_counter_value"), "a sample has no value"
        return
    assert event.type in (event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END), "an event of another type"
    assert not is_counter, "a slice is on a counter"
    if event.type == event.TYPE_SLICE_BEGIN:
        assert has_state, "an event with interned names does not say that it needs them"
        assert event.name_iid in names, "a slice's name is not interned"
    for argument in event.debug_annotations:
        assert argument.name_iid in arguments, "an argument's name is not interned"
        assert argument.WhichOneof("value") == "int_value", "an argument has no value"


def _play(events: list[tuple[int, int, Any]], kinds: Any, tracks: dict[int, Any]) -> Seen:
    """Go through the events by time, those of one time in the order of the file, as the importer does."""
    open_since: dict[int, int] = {}
    slices = samples = longest = 0
    for time, _, event in events:
        if event.type == kinds.TYPE_COUNTER:
            samples += 1
        elif event.type == kinds.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_since, "slices of one track overlap"
            open_since[event.track_uuid] = time
        else:
            assert event.track_uuid in open_since, "a slice ends that has not begun"
            longest = max(longest, time - open_since.pop(event.track_uuid))
            slices += 1
    assert not open_since, "a slice does not end"
    return Seen(len(tracks), slices, samples, longest)
