package ca

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Proxy is a gRPC server that forwards every unary call to another server, byte by byte, and records the call.
type Proxy struct {
	Address string // host:port of the proxy

	server   *grpc.Server
	upstream *grpc.ClientConn
	file     *os.File

	underWay atomic.Int64

	mu      sync.Mutex
	calls   []Call
	changed chan struct{} // with each call, this channel is closed and replaced
}

// Transport holds the credentials for connections from callers to a Proxy, and those for connections from the Proxy
// to its target. Nil means plaintext.
type Transport struct {
	Server, Client credentials.TransportCredentials
}

// NewProxy listens on a free port of loopback. The proxy forwards each call to a target (host:port) that answers. The
// targets may start later. The proxy also writes each call as a line of JSON to the file at path.
func NewProxy(targets []string, path string, over Transport) (*Proxy, error) {
	if over.Server == nil {
		over.Server = insecure.NewCredentials()
	}
	if over.Client == nil {
		over.Client = insecure.NewCredentials()
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("record calls: %w", err)
	}
	upstream, err := Dial(over.Client, targets...)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), file.Close(), upstream.Close())
	}
	p := &Proxy{Address: l.Addr().String(), upstream: upstream, file: file, changed: make(chan struct{})}
	p.server = grpc.NewServer(grpc.Creds(over.Server), grpc.UnknownServiceHandler(p.handle), grpc.ForceServerCodec(raw{}))
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// Close ends the proxy, and cancels all pending calls.
func (p *Proxy) Close() error {
	p.server.Stop()
	return errors.Join(p.upstream.Close(), p.file.Close())
}

// Calls returns the calls that have ended so far and for which the function `keep` returns true, in the order in
// which they ended. When keep is nil, it returns all calls that have ended.
func (p *Proxy) Calls(keep func(Call) bool) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Call
	for _, c := range p.calls {
		if keep == nil || keep(c) {
			out = append(out, c)
		}
	}
	return out
}

// UnderWay returns the number of calls that have begun and have not ended yet.
func (p *Proxy) UnderWay() int { return int(p.underWay.Load()) }

// Last returns the sequence number of the call that ended last, or 0.
func (p *Proxy) Last() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Await waits for a call with a sequence number above since for which the function `want` returns true. It returns
// the first such call.
func (p *Proxy) Await(ctx context.Context, since int, want func(Call) bool) (Call, error) {
	for next := since; ; {
		p.mu.Lock()
		changed := p.changed
		fresh := p.calls[min(next, len(p.calls)):]
		p.mu.Unlock()
		for _, c := range fresh {
			if want(c) {
				return c, nil
			}
			next = c.Seq
		}
		select {
		case <-ctx.Done():
			return Call{}, fmt.Errorf("wait for a call: %w", ctx.Err())
		case <-changed:
		}
	}
}

func (p *Proxy) handle(_ any, stream grpc.ServerStream) error {
	p.underWay.Add(1)
	defer p.underWay.Add(-1)
	at := time.Now()
	full, _ := grpc.MethodFromServerStream(stream)
	var request, response []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	ctx := stream.Context()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	err := p.upstream.Invoke(ctx, full, &request, &response, grpc.ForceCodec(raw{}))
	p.record(at, full, request, response, err)
	if err != nil {
		return err
	}
	return stream.SendMsg(&response)
}

func (p *Proxy) record(at time.Time, full string, request, response []byte, err error) {
	c := Call{At: at, Duration: time.Since(at), Code: status.Code(err).String()}
	if err != nil {
		c.Error, response = status.Convert(err).Message(), nil
	} else if response == nil {
		response = []byte{}
	}
	c.Method, c.Request, c.Response = decode(full, request, response)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Seq = len(p.calls) + 1
	p.calls = append(p.calls, c)
	close(p.changed)
	p.changed = make(chan struct{})
	if line, err := json.Marshal(c); err == nil {
		_, _ = p.file.Write(append(line, '\n'))
	}
}

// raw is a codec that passes bytes unchanged.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("pass on %T: %w", v, io.ErrUnexpectedEOF)
	}
	return *b, nil
}

func (raw) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("take %T: %w", v, io.ErrUnexpectedEOF)
	}
	*b = append([]byte{}, data...)
	return nil
}
