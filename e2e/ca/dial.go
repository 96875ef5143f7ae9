package ca

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// Dial returns a connection to the addresses (host:port), as to a Service: each call goes to an address that answers.
// When a server dies, its pending calls fail, and the next call goes to another server. All servers' certificates
// must be valid for the host of the first address.
func Dial(over credentials.TransportCredentials, addresses ...string) (*grpc.ClientConn, error) {
	replicas := manual.NewBuilderWithScheme("replicas")
	var state resolver.State
	for _, a := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: a})
	}
	replicas.InitialState(state)
	conn, err := grpc.NewClient("replicas:///"+addresses[0], grpc.WithResolvers(replicas),
		grpc.WithTransportCredentials(over), grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second,
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}}))
	if err != nil {
		return nil, fmt.Errorf("dial %v: %w", addresses, err)
	}
	return conn, nil
}
