"""The comfortable forms of the ops, and what XlaBuilder has beside HLO's ops; same file names as `xbuild.ops`."""
