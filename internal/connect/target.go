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

// Target holds the address of Temporal, the namespace, and the credentials.
type Target struct {
	Address, Namespace string

	tls       *follower // nil means plaintext
	key       func(context.Context) (string, error)
	headers   map[string]string
	authority string
	codec     grpc.DialOption // nil means plain payloads
}

// Open reads the settings and the files to which the settings refer. It does not connect. If a file becomes invalid
// later, the Target writes an error to log and uses the last valid content.
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

// codec returns an option for the gRPC connection that encrypts the payloads. It returns nil if the flag for the key
// file is not set.
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

// hostPort matches a gRPC address: a host and a port, with an optional prefix that selects a resolver.
var hostPort = regexp.MustCompile(`^([a-z]+:///)?[^/\s]+:[0-9]+$`)

func checkAddress(address string) error {
	if hostPort.MatchString(address) {
		return nil
	}
	return fmt.Errorf("Temporal's address %q: use host:port, without http://", address)
}

// keyFrom returns a function that reads the API key from the file at each call. If the file is not valid, the
// function writes an error to log and returns the last valid key.
func keyFrom(path string, log *slog.Logger) (func(context.Context) (string, error), error) {
	files, err := reload.Open(func(contents [][]byte) (string, error) {
		if key := strings.TrimSpace(string(contents[0])); key != "" && !strings.ContainsAny(key, "\r\n") {
			return key, nil
		}
		return "", fmt.Errorf("%s: the file must contain the API key in one line", path)
	}, path)
	if err != nil {
		return nil, fmt.Errorf("--temporal-api-key-file: %w", err)
	}
	return func(context.Context) (string, error) {
		return files.Latest(log, "cannot read the API key for Temporal; the last key stays in use"), nil
	}, nil
}

// Options returns the options with which a client of the SDK connects to the target.
func (t *Target) Options() client.Options {
	o := client.Options{HostPort: t.Address, Namespace: t.Namespace}
	o.ConnectionOptions.Authority = t.authority
	o.ConnectionOptions.TLSDisabled = t.tls == nil
	if t.tls != nil {
		o.ConnectionOptions.TLS = t.tls.latest() // the SDK requires a config; the follower makes the connections
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

// fixed is a client.HeadersProvider that adds the same headers to each request.
type fixed map[string]string

// GetHeaders implements client.HeadersProvider.
func (f fixed) GetHeaders(context.Context) (map[string]string, error) { return f, nil }

// proxyOf chooses the proxy of a request from the environment, as grpc-go does.
var proxyOf = http.ProxyFromEnvironment

// proxy returns the host:port of the HTTP proxy through which the client connects, or "" without a proxy.
func (t *Target) proxy() string {
	through, err := proxyOf(&http.Request{URL: &url.URL{Scheme: "https", Host: t.Address}})
	if err != nil || through == nil {
		return ""
	}
	return through.Host
}

// dialed returns the host:port to which the client connects, and true. It returns false if a proxy or a gRPC resolver
// chooses the address.
func (t *Target) dialed() (string, bool) {
	address := t.Address
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		if scheme != "dns" && scheme != "passthrough" {
			return "", false
		}
		address = strings.TrimPrefix(rest, "/")
	}
	through, err := proxyOf(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	return address, err == nil && through == nil
}

// Local reports whether the target's address is localhost, a loopback or an unspecified IP address.
func (t *Target) Local() bool {
	address, _ := t.dialed()
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()))
}
