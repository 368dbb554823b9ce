"""js-waku's `@waku/message-encryption`, beside our envelopes."""
