"""The KRaft metadata log: wire format, decoding, committed end, replay."""
