// Package client talks to the discovery server: Source lists its offers for a worker, Put and Delete are for
// providers' administrators.
//
// What the server says is not believed: offers are validated like those of a file, the Secrets they may refer to are
// bounded by namespace, and Resolve reads every provider's id from the provider. All files are read again
// when they change. Only HTTPS is spoken, and redirects are not followed, so the token goes nowhere else.
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

// What callers can meet; match with errors.Is.
var (
	// ErrUnreachable: no answer came, or one that is not the discovery server's, or it has too much to do; trying again
	// may help.
	ErrUnreachable = errors.New("discovery server unreachable")
	// ErrDenied: the server does not know the token or certificate, or who has it may not do it.
	ErrDenied = errors.New("denied by the discovery server")
	// ErrRefused: the server will not do it as asked.
	ErrRefused = errors.New("refused by the discovery server")
	// ErrSession: the session is over, because a newer one has begun or the server has lost it. Also an ErrRefused.
	ErrSession = fmt.Errorf("%w: the session is over", ErrRefused)
	// ErrReplayed: somebody has written in the session already, with this sequence or a later one. Also an ErrRefused.
	ErrReplayed = fmt.Errorf("%w: the write is replayed", ErrRefused)
)

// Options say where the server is.
type Options struct {
	// URL is https://host:port, with the path prefix of a proxy if there is one.
	URL string
	// CAFile holds the authorities, in PEM, that the server's certificate is checked against; empty means the system's.
	CAFile string
	// TokenFile holds the bearer token; empty where a certificate stands for it.
	TokenFile string
	// CertFile and KeyFile hold the client's certificate, with its chain, and its key.
	CertFile, KeyFile string
	// SecretNamespaces are the namespaces that listed offers may refer to; required for Source. Whoever may write to the
	// discovery server could otherwise have the worker use any Secret it can read.
	SecretNamespaces []string
	// NetworkCIDRs are where the addresses that listed offers name for their network must lie; none: they may name no
	// address. This cluster's gateway would otherwise dial whatever a writer likes.
	NetworkCIDRs []string
	// Timeout bounds one request, and the waits that the server asks for before it is sent again. Default 10s.
	Timeout time.Duration
	// KeepStale is how long Source serves its last list while the server cannot be reached. Default 5m; negative: not at
	// all.
	KeepStale time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Client is a connection to one discovery server. Safe for concurrent use.
type Client struct {
	options Options
	base    *url.URL
	cidrs   []netip.Prefix
	web     *reload.Files[*http.Client]
}

// New checks the options and reads the files for the first time; it does not connect.
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

// URL is where the server is.
func (c *Client) URL() string { return c.options.URL }

const (
	maxToken  = 4 << 10
	maxAnswer = 6 << 20 // 500 offers of at most 8 KiB, with what the server adds
	// maxProblem bounds a problem document: each of its errors becomes many times its size.
	maxProblem = 64 << 10
)

// token is empty when there is none to be sent.
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
		return "", fmt.Errorf("read token file: %s holds no token", c.options.TokenFile)
	}
	return token, nil
}

// follow makes HTTP clients that trust the CA file, and show the certificate, as they are now.
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
				return nil, fmt.Errorf("%s holds no certificate in PEM", options.CAFile)
			}
		}
		transport.CloseIdleConnections() // those of the files' last version
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

// do sends one request and decodes the answer into out, if it is not nil. Unknown fields of an answer are ignored: the
// server may be newer. A request that was one too many is sent again when the server says, if there is time.
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

// once sends the request once. again is how long to wait before another try, 0 when there is nothing to wait for.
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
		return 0, fmt.Errorf("%w: its answer is larger than %d MiB", ErrUnreachable, maxAnswer>>20)
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
		return 0, fmt.Errorf("%w: its answer is not the JSON of a discovery server: %w", ErrUnreachable, err)
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

// refusal makes an error of a status and, if the server wrote one, its problem document.
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
		if errors.Is(kind, ErrRefused) { // somebody's page: what stands in front of the server has lost it
			kind = ErrUnreachable
		}
		return fmt.Errorf("%w: it answers %d %s", kind, status, http.StatusText(status))
	}
	switch p.Type {
	case api.TypeSession:
		kind = ErrSession
	case api.TypeReplay:
		kind = ErrReplayed
	}
	return fmt.Errorf("%w: %d %s", kind, status, inWords(p))
}

// inWords is what a problem says, cut.
func inWords(p api.Problem) string {
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
