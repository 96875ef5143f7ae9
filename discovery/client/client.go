// Package client is the client of the discovery server. A worker lists the server's offers with Source.
// Administrators of providers write offers with Put and Delete, and agents write them with Session.
//
// The client does not trust the server's responses. It validates an offer as strictly as an offer in a file, and the
// Secret of the offer must be in a permitted namespace. discovery.Resolve reads each provider's id from the
// provider's cluster. The client reads its files again when they change. It uses only HTTPS and does not follow
// redirects, so that the token does not reach another server.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/traced"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Callers can match these errors with errors.Is.
var (
	// ErrUnreachable means that no response arrived, that the response is not from a discovery server, or that the
	// server cannot answer now, for example because it is overloaded. A retry may help.
	ErrUnreachable = errors.New("discovery server unreachable")
	// ErrDenied means that the server does not know the client's token or certificate, or that the client lacks the
	// permission.
	ErrDenied = errors.New("denied by the discovery server")
	// ErrRefused means that the server rejects the request, and would also reject a repetition.
	ErrRefused = errors.New("refused by the discovery server")
	// ErrSession means that the session has ended, because a newer session has started or the server has lost the
	// session. errors.Is also matches this error with ErrRefused.
	ErrSession = fmt.Errorf("%w: the session has ended", ErrRefused)
	// ErrReplayed means that the session already has a write with this sequence number or a higher one. errors.Is
	// also matches this error with ErrRefused.
	ErrReplayed = fmt.Errorf("%w: the write was repeated", ErrRefused)
)

// Options configures a Client: the server, the client's credentials and the limits on offers.
type Options struct {
	// URL is https://host:port, followed by the path prefix of a proxy if the server is behind one.
	URL string
	// CAFile is the PEM file with the authorities that may sign the server's certificate; empty means the system's
	// authorities.
	CAFile string
	// TokenFile is the file with the bearer token; empty when the client uses a certificate instead.
	TokenFile string
	// CertFile is the file with the client's certificate and its chain. KeyFile is the file with the key of the
	// certificate.
	CertFile, KeyFile string
	// SecretNamespaces are namespaces: a listed offer may refer only to Secrets in these namespaces. Required for
	// Source. Without this bound, a writer at the discovery server could make the worker use any Secret that the
	// worker can read.
	SecretNamespaces []string
	// NetworkCIDRs are ranges of addresses: each network address in a listed offer must be in one of these ranges. If
	// empty, listed offers must not contain addresses. Without this bound, a writer could make this cluster's gateway
	// connect to any address.
	NetworkCIDRs []string
	// Timeout bounds one request, including the waits that the server requests before a retry. Default 10s.
	Timeout time.Duration
	// KeepStale is the time for which Source returns its last list while the server is unreachable. Default 5m. With
	// a negative value, Source returns an error immediately.
	KeepStale time.Duration
	// Now returns the current time. Default time.Now.
	Now func() time.Time
}

// Client sends requests to one discovery server. It is safe for concurrent use.
type Client struct {
	options Options
	base    *url.URL
	cidrs   []netip.Prefix
	web     *reload.Files[*http.Client]
}

// New checks the options and reads the files for the first time. It does not connect to the server.
func New(options Options) (*Client, error) {
	base, err := url.Parse(options.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("parse discovery URL: %w", err)
	case base.Scheme != "https" || base.Host == "":
		return nil, fmt.Errorf("parse discovery URL: %q must be https://host[:port]", base.Redacted())
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("parse discovery URL: remove user, query and fragment; the token belongs in the token file")
	}
	var cidrs []netip.Prefix
	for _, text := range options.NetworkCIDRs {
		cidr, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("parse network CIDR %q: write it like 203.0.113.0/24", text)
		}
		cidrs = append(cidrs, cidr)
	}
	options.Timeout = cmp.Or(options.Timeout, 10*time.Second)
	options.KeepStale = cmp.Or(options.KeepStale, 5*time.Minute)
	if options.Now == nil {
		options.Now = time.Now
	}
	web, err := follow(options)
	if err != nil {
		return nil, err
	}
	c := &Client{options: options, base: base, web: web, cidrs: cidrs}
	if _, err := c.token(); err != nil {
		return nil, err
	}
	return c, nil
}

// URL returns the URL of the server.
func (c *Client) URL() string { return c.options.URL }

const (
	maxToken  = 4 << 10
	maxAnswer = 6 << 20 // 500 offers of at most 8 KiB, with the fields that the server adds
	// maxProblem bounds a problem document in bytes, because a list of errors needs many times its size in memory.
	maxProblem = 64 << 10
)

// token returns the bearer token, or "" when none is configured.
func (c *Client) token() (string, error) {
	if c.options.TokenFile == "" {
		return "", nil
	}
	raw, err := os.ReadFile(c.options.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read token file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || len(token) > maxToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("read token file: %s contains no token", c.options.TokenFile)
	}
	return token, nil
}

// follow returns a source of HTTP clients. The HTTP client trusts the CA file and sends the client certificate. After
// a change of a file, the source provides a new HTTP client.
func follow(options Options) (*reload.Files[*http.Client], error) {
	if (options.CertFile == "") != (options.KeyFile == "") || options.CertFile == "" && options.TokenFile == "" {
		return nil, errors.New("open discovery client: give a token file, or a certificate with its key")
	}
	var paths []string
	for _, path := range []string{options.CertFile, options.KeyFile, options.CAFile} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	transport := &http.Transport{}
	files, err := reload.Open(func(pem [][]byte) (*http.Client, error) {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if options.CertFile != "" {
			pair, err := tls.X509KeyPair(pem[0], pem[1])
			if err != nil {
				return nil, fmt.Errorf("certificate %s with key %s: %w", options.CertFile, options.KeyFile, err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		if options.CAFile != "" {
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(pem[len(pem)-1]) {
				return nil, fmt.Errorf("%s contains no certificate in PEM", options.CAFile)
			}
		}
		transport.CloseIdleConnections() // closes the idle connections of the previous HTTP client
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 2,
		}
		return &http.Client{
			Transport:     traced.Transport(transport),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}, nil
	}, paths...)
	if err != nil {
		return nil, fmt.Errorf("read TLS files: %w", err)
	}
	return files, nil
}

// do sends one request and decodes the response into out, unless out is nil. It ignores unknown fields of a response,
// because the server may be newer. If the server refuses the request because of the rate limit, do repeats the
// request after the time that the response contains, unless the timeout is earlier.
func (c *Client) do(ctx context.Context, method string, target *url.URL, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	for {
		again, err := c.once(ctx, method, target, in, out)
		if err == nil || again == 0 {
			return err
		}
		if end, _ := ctx.Deadline(); time.Until(end) < again || !wait.For(ctx, again) {
			return err
		}
	}
}

// once sends the request once. The result `again` is the time to wait before a retry, or 0 if do must not retry.
func (c *Client) once(ctx context.Context, method string, target *url.URL, in, out any) (again time.Duration,
	err error) {
	req, err := c.request(ctx, method, target, in)
	if err != nil {
		return 0, err
	}
	web, _, err := c.web.Get()
	if err != nil {
		return 0, fmt.Errorf("read TLS files: %w", err)
	}
	resp, err := web.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return 0, fmt.Errorf("%w: read answer: %w", ErrUnreachable, err)
	}
	if len(raw) > maxAnswer {
		return 0, fmt.Errorf("%w: the answer is larger than %d MiB", ErrUnreachable, maxAnswer>>20)
	}
	if !slices.Contains([]int{http.StatusOK, http.StatusCreated, http.StatusNoContent}, resp.StatusCode) {
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && resp.StatusCode ==
			http.StatusTooManyRequests {
			again = time.Duration(min(max(seconds, 1), 3600)) * time.Second
		}
		return again, refusal(resp.StatusCode, resp.Header.Get("Content-Type"), raw)
	}
	if out == nil {
		return 0, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return 0, fmt.Errorf("%w: the answer is not the JSON of a discovery server: %w", ErrUnreachable, err)
	}
	return 0, nil
}

func (c *Client) request(ctx context.Context, method string, target *url.URL, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("marshal request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Accept", api.ContentJSON+", "+api.ContentProblem)
	if in != nil {
		req.Header.Set("Content-Type", api.ContentJSON)
	}
	return req, nil
}

// refusal returns an error for the status. If the response has a problem document, the error includes it.
func refusal(status int, contentType string, raw []byte) error {
	kind := ErrRefused
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		kind = ErrDenied
	case status < 400 || status >= 500 || status == http.StatusTooManyRequests:
		kind = ErrUnreachable
	}
	var p api.Problem
	if !strings.HasPrefix(contentType, api.ContentProblem) || len(raw) > maxProblem || json.Unmarshal(raw, &p) != nil {
		if errors.Is(kind, ErrRefused) { // a proxy has sent this answer
			kind = ErrUnreachable
		}
		return fmt.Errorf("%w: the answer is %d %s", kind, status, http.StatusText(status))
	}
	switch p.Type {
	case api.TypeSession:
		kind = ErrSession
	case api.TypeReplay:
		kind = ErrReplayed
	}
	return fmt.Errorf("%w: %d %s", kind, status, renderProblem(p))
}

// renderProblem returns a problem as a text of limited length.
func renderProblem(p api.Problem) string {
	detail := p.Title + ": " + p.Detail
	for i, e := range p.Errors {
		if i == 10 {
			detail += fmt.Sprintf("; and %d more", len(p.Errors)-i)
			break
		}
		detail += "; " + strings.TrimPrefix(e.Path+": "+e.Detail, ": ")
	}
	return shorten.Words(detail, 2000)
}

func (c *Client) target(name string) *url.URL {
	if name == "" {
		return c.base.JoinPath(api.PathOffers)
	}
	return c.base.JoinPath(api.PathOffers, name)
}
