"""The cache policies: which K/V reads reach DRAM a second time."""

# `paper`: Eq. 4 chooses Eq. 3 or Eq. 6. `capacity`: LRU stack distances of the wave model, with Q, O and all K/V groups
# in flight. `lru`: a simulated tile-level LRU cache. `random`: random replacement.
POLICIES = ("paper", "capacity", "lru", "random")
CLOSED_POLICIES = ("paper", "capacity", "random")
