package connect

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/codec"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// Target identifies one Temporal namespace, and how to reach it.
type Target struct {
	Address, Namespace string

	tls       *follower // nil: plaintext
	key       func(context.Context) (string, error)
	headers   map[string]string
	authority string
	codec     grpc.DialOption // nil: payloads are plain
}

// Open reads the settings and the files that they name. log receives errors of files that become unusable later.
func (f *Flags) Open(log *slog.Logger) (*Target, error) {
	p, err := f.profile()
	if err != nil {
		return nil, err
	}
	t := &Target{Address: p.Address, Namespace: p.Namespace, headers: p.GRPCMeta, authority: p.Authority}
	if err := checkAddress(p.Address); err != nil {
		return nil, err
	}
	if p.APIKey != "" {
		t.key = func(context.Context) (string, error) { return p.APIKey, nil }
	}
	if f.APIKeyIn != "" {
		if t.key, err = keyFrom(f.APIKeyIn, log); err != nil {
			return nil, err
		}
	}
	if t.codec, err = f.codec(log); err != nil {
		return nil, err
	}
	if p.TLS != nil && p.TLS.Disabled || p.TLS == nil && t.key == nil {
		return t, nil
	}
	t.tls, err = newFollower(p.TLS, log)
	return t, err
}

// codec returns the option that makes the connection encrypt payloads; nil without keys.
func (f *Flags) codec(log *slog.Logger) (grpc.DialOption, error) {
	if f.CodecKeys == "" {
		return nil, nil
	}
	keys, err := codec.Open(f.CodecKeys, log)
	if err != nil {
		return nil, fmt.Errorf("--temporal-codec-key-file: %w", err)
	}
	return keys.DialOption()
}

// hostPort matches gRPC's addresses: a host and a port, with an optional resolver.
var hostPort = regexp.MustCompile(`^([a-z]+:///)?[^/\s]+:[0-9]+$`)

func checkAddress(address string) error {
	if hostPort.MatchString(address) {
		return nil
	}
	return fmt.Errorf("Temporal's address %q: use host:port, without http://", address)
}

// keyFrom returns a function that reads the API key from a file, and follows its changes.
func keyFrom(path string, log *slog.Logger) (func(context.Context) (string, error), error) {
	files, err := reload.Open(func(contents [][]byte) (string, error) {
		if key := strings.TrimSpace(string(contents[0])); key != "" && !strings.ContainsAny(key, "\r\n") {
			return key, nil
		}
		return "", fmt.Errorf("%s: put the API key there, in one line", path)
	}, path)
	if err != nil {
		return nil, fmt.Errorf("--temporal-api-key-file: %w", err)
	}
	return func(context.Context) (string, error) {
		return files.Latest(log, "Temporal's API key cannot be read, the last one stays in use"), nil
	}, nil
}

// Options returns the options with which the SDK's client reaches the target.
func (t *Target) Options() client.Options {
	o := client.Options{HostPort: t.Address, Namespace: t.Namespace}
	o.ConnectionOptions.Authority = t.authority
	o.ConnectionOptions.TLSDisabled = t.tls == nil
	if t.tls != nil {
		o.ConnectionOptions.TLS = t.tls.latest() // the SDK requires it; the follower makes the connections
		o.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithTransportCredentials(t.tls)}
	}
	if t.codec != nil {
		o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, t.codec)
	}
	if t.key != nil {
		o.Credentials = client.NewAPIKeyDynamicCredentials(t.key)
	}
	if len(t.headers) > 0 {
		o.HeadersProvider = fixed(t.headers)
	}
	return o
}

// fixed holds headers that each request carries.
type fixed map[string]string

// GetHeaders implements client.HeadersProvider.
func (f fixed) GetHeaders(context.Context) (map[string]string, error) { return f, nil }

// dialed returns the host:port of the connection; false when a proxy or a resolver chooses it.
func (t *Target) dialed() (string, bool) {
	address := t.Address
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		if scheme != "dns" && scheme != "passthrough" {
			return "", false
		}
		address = strings.TrimPrefix(rest, "/")
	}
	through, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	return address, err == nil && through == nil
}

// Local reports whether the target is on this machine.
func (t *Target) Local() bool {
	address, _ := t.dialed()
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()))
}
