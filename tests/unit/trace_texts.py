"""A small valid trace: a producer, two consumers under ping-pong, clusters of two with multicast."""

GOOD = """\
SATRACE 1
SHAPE batch=1 seqlen_q=256 seqlen_kv=256 heads_q=4 heads_kv=2 head_dim=64 causal=no dtype=fp16
KERNEL version=x tile_m=64 tile_n=64 stages=2 consumers=2 cluster=2 schedule=static ping_pong=no overlap=yes \
p_in_registers=yes rescale_before_pv=no
ORIGIN log_source=none
DEF_TMAP K base=0x0 dims=64,256,2,1 strides=256,128,65536 box=64,32,1,1 element_bytes=2 origin=kv
DEF_TMAP O base=0x100000 dims=64,256,4,1 strides=512,128,131072 box=64,64,1,1 element_bytes=2 origin=query
DEF_RING K stages=2 bytes=8192 releases=4 empty=mbarrier
PROGRAM start role=1
  BAR_ARRIVE 1
END
PROGRAM load role=0
  REPEAT 4
    ACQUIRE_STAGE K[i]
    TMA_TENSOR K[i] map=K x=0 y=192-64*i multicast
  END
END
PROGRAM first role=1
  REPEAT 4
    MB_WAIT K[i]
    BAR_WAIT 1 arrivals=1
    WGMMA m=64 n=64 k=16 count=4 mode=RS d=S a=Q b=K[i] group=i
    WGMMA_COMMIT group=i
    BAR_ARRIVE 2
    WGMMA_WAIT group=i outstanding=0
    RELEASE_STAGE K[i] remote
  END
  TMA_STORE map=O x=0 y=0 group=0
  TMA_COMMIT group=0
  TMA_WAIT group=0 outstanding=0 read
END
PROGRAM second role=2
  REPEAT 4
    BAR_WAIT 2 arrivals=1
    WGMMA m=64 n=64 k=16 count=4 mode=RS d=S a=Q b=K[i] group=i
    WGMMA_COMMIT group=i
    BAR_ARRIVE 1
    WGMMA_WAIT group=i outstanding=0
    RELEASE_STAGE K[i] remote
  END
END
TILE_KIND tile load first second
PROLOGUE - start -
SCHEDULE static ctas=4 cluster=2
  CTA 0
    TILES tile 0,0,0 2,0,0
  CTA 1
    TILES tile 1,0,0 3,0,0
  CTA 2
    TILES tile 0,1,0
  CTA 3
    TILES tile 1,1,0
END
"""
