"""Our channels and js-waku's over real Waku nodes, in containers."""
