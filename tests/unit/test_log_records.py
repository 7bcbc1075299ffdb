"""Which records a reader refuses: events, stages, blocks and tiles that the kernel cannot have logged."""

import msgspec
import numpy as np
import pytest

from simfa.events import RECORD_DTYPE, Event
from simfa.kernel import kernel_for
from simfa.salog_check import RecordRules
from simfa.workload import AttentionShape

# 128 x 176 tiles: 3 query blocks, 2 blocks of K/V.
SHAPE = AttentionShape(batch=2, seqlen_q=300, seqlen_kv=352, heads_q=4, heads_kv=2, head_dim=128)
RULES = {level: RecordRules(SHAPE, kernel_for(SHAPE), level) for level in (1, 2)}


def row(*records):
    """Return records of (event, stage, payload, aux), at rising times."""
    return np.array([(time, *fields) for time, fields in enumerate(records)], RECORD_DTYPE)


@pytest.mark.parametrize(
    ("level", "role", "record"),
    [
        (1, 0, (Event.TMA_K_ISSUE, 1, 1, 0)),
        (1, 1, (Event.WAIT_WG_1, 1, 1, 0)),
        (2, 0, (Event.TILE, 2, 3, 1)),
        (2, 2, (Event.TILE, 2, 3, 1)),
        (2, 2, (Event.BAR_SYNC_START, 0, 15, 0)),
        (2, 1, (Event.KERNEL_END, 0, 0, 0)),
    ],
)
def test_limits_are_inclusive(level, role, record):
    assert RULES[level].first_fault(row(record), role) is None


@pytest.mark.parametrize(
    ("level", "role", "record", "message"),
    [
        (2, 1, (0, 0, 0, 0), "unknown event 0"),
        (2, 1, (15, 0, 0, 0), "unknown event 15"),
        (2, 1, (39, 0, 0, 0), "unknown event 39"),
        (2, 1, (65535, 0, 0, 0), "unknown event 65535"),
        (1, 1, (Event.TILE, 0, 0, 0), "TILE in a log of level 1"),
        (2, 0, (Event.GEMM_QK_ISSUE, 0, 0, 0), "GEMM_QK_ISSUE by role 0; expected it from consumers"),
        (2, 2, (Event.TMA_K_ISSUE, 0, 0, 0), "TMA_K_ISSUE by role 2; expected it from the producer"),
        (1, 0, (Event.TMA_V_ISSUE, 2, 0, 0), "TMA_V_ISSUE with stage 2; expected below 2 stages of the ring"),
        (2, 1, (Event.RELEASE_V, 0, 2, 0), "RELEASE_V with payload 2; expected below 2 blocks of K/V"),
        (2, 1, (Event.BAR_ARRIVE, 0, 16, 0), "BAR_ARRIVE with payload 16; expected below 16 named barriers"),
        (1, 0, (Event.TMA_Q_ISSUE, 0, 3, 0), "TMA_Q_ISSUE with payload 3; expected below 3 query blocks"),
        (2, 1, (Event.TILE, 3, 0, 0), "TILE with stage 3; expected below 3 query blocks"),
        (2, 1, (Event.TILE, 0, 4, 0), "TILE with payload 4; expected below 4 query heads"),
        (2, 1, (Event.TILE, 0, 0, 2), "TILE with aux 2; expected below 2 batch entries"),
    ],
)
def test_the_first_impossible_record_is_named(level, role, record, message):
    good = (Event.TMA_K_ISSUE if role == 0 else Event.WAIT_WG_0, 0, 0, 0)
    fault = RULES[level].first_fault(row(good, good, record, record), role)
    assert fault is not None
    assert fault.record == 2
    assert fault.message.startswith(message)


def test_every_event_belongs_to_a_role():
    for event in Event:
        faults = [RULES[2].first_fault(row((event, 0, 0, 0)), role) for role in (0, 1)]
        assert None in faults, event


@pytest.mark.parametrize("field", ["batch", "heads_q", "seqlen_q", "seqlen_kv"])
def test_sizes_beyond_a_record_limit_nothing(field):
    shape = msgspec.structs.replace(SHAPE, **{field: 10**20})
    tile = row((Event.TILE, 0, 0, 0))
    assert RecordRules(shape, kernel_for(SHAPE), 2).first_fault(tile, 0) is None
