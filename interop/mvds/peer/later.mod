module reliable-channel/interop/mvds/peer

go 1.24.0

require (
	github.com/golang/protobuf v1.3.2
	github.com/vacp2p/mvds v0.0.25
	go.uber.org/zap v1.10.0
)

require (
	go.uber.org/atomic v1.4.0 // indirect
	go.uber.org/multierr v1.1.0 // indirect
)
