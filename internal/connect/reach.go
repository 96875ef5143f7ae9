package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"time"
)

// reachTimeout is the maximum duration of Reach. answerTimeout is the time for which Reach waits for a refusal of our
// certificate.
const (
	reachTimeout  = 5 * time.Second
	answerTimeout = 2 * time.Second
)

// whereFrom is a part of messages. It lists the settings that may contain the address.
const whereFrom = "check --temporal-address, TEMPORAL_ADDRESS or the profile"

// Reach connects to Temporal step by step. If a step fails, Reach returns a Failure with this step and the remedy,
// whereas gRPC would only report that the connection failed. Reach blocks for a few seconds at most. If a proxy or a
// gRPC resolver chooses the address, Reach does not connect and returns nil. Over a plaintext connection, Reach does
// not find out whether the server requires TLS; Explain finds this out after a failed request.
func (t *Target) Reach(ctx context.Context) error { return t.reach(ctx, false) }

// reach implements Reach. If suspectTLS is true, reach also sends a TLS handshake over a plaintext connection.
// Otherwise it does not send a handshake, because a Temporal without TLS resets the connection after it, and `kubectl
// port-forward` ends when a connection is reset.
func (t *Target) reach(ctx context.Context, suspectTLS bool) error {
	if f := t.ownCertificate(time.Now()); f != nil {
		return f
	}
	address, direct := t.dialed()
	if !direct {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return t.noConnection(err)
	}
	defer conn.Close()
	if t.tls == nil {
		if suspectTLS {
			return t.plaintextAnswer(ctx, conn)
		}
		return nil
	}
	host, _, _ := net.SplitHostPort(address)
	return t.tlsAnswer(ctx, conn, host)
}

// ownCertificate returns an error if our client certificate has expired or is not valid yet. Every server would
// refuse such a certificate.
func (t *Target) ownCertificate(now time.Time) error {
	if t.tls == nil || len(t.tls.latest().Certificates) == 0 {
		return nil
	}
	leaf := t.tls.latest().Certificates[0].Leaf
	switch {
	case leaf == nil:
		return nil
	case now.After(leaf.NotAfter):
		return fail(ExitRefused, "our client certificate for Temporal at %s%s expired on %s: renew it", t.Address, t.in(),
			day(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fail(ExitRefused, "our client certificate for Temporal at %s%s is valid from %s: check it, and the clock",
			t.Address, t.in(), day(leaf.NotBefore))
	}
	return nil
}

// in returns the path of our client certificate in parentheses, for messages. It returns "" if the certificate is not
// from a file.
func (t *Target) in() string {
	if t.tls.cert == "" {
		return ""
	}
	return " (" + t.tls.cert + ")"
}

func day(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (t *Target) noConnection(err error) error {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fail(ExitUnreachable, "Temporal's address %s: %s has no address (%s): %s", t.Address, dns.Name, dns.Err,
			whereFrom)
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return fail(ExitUnreachable, "Temporal at %s does not answer: %s, and the network between, such as a firewall",
			t.Address, whereFrom)
	default:
		return fail(ExitUnreachable, "no process listens at Temporal's address %s (%v): start Temporal, or %s", t.Address,
			errors.Unwrap(err), whereFrom)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// tlsRefusal is the beginning of the error text with which crypto/tls reports an alert of the server.
const tlsRefusal = "remote error: tls: "

// plaintextAnswer returns an error if the server at the other end of conn requires TLS, because our settings are for
// plaintext.
func (t *Target) plaintextAnswer(ctx context.Context, conn net.Conn) error {
	err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) // sends no credentials
	if err == nil || strings.Contains(err.Error(), tlsRefusal) {
		return fail(ExitRefused, "Temporal at %s requires TLS: give --temporal-tls, or --temporal-tls-ca and the other "+
			"--temporal-tls-* flags; if your Temporal has no TLS, %s", t.Address, whereFrom)
	}
	return nil
}

// tlsAnswer makes a TLS connection to Temporal over the connection raw. If a step fails, it returns a Failure with
// this step.
func (t *Target) tlsAnswer(ctx context.Context, raw net.Conn, host string) error {
	config := t.tls.latest().Clone()
	config.NextProtos = []string{"h2"}
	config.ServerName = cmp.Or(config.ServerName, host)
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return t.noHandshake(err, config.ServerName)
	}
	// With TLS 1.3, a server that refuses our certificate sends an alert only after the handshake, so we wait for an
	// alert. A server that accepts our certificate sends nothing before our first request.
	_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
	if _, err := conn.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
		return t.noHandshake(err, config.ServerName)
	}
	return nil
}

func (t *Target) noHandshake(err error, name string) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return fail(ExitRefused, "the certificate of Temporal at %s is signed by %q, which is not among the authorities we "+
			"trust: give that authority with --temporal-tls-ca or TEMPORAL_TLS_SERVER_CA_CERT_PATH", t.Address,
			issuer(unknown.Cert))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail(ExitRefused, "the certificate of Temporal at %s is valid from %s to %s only: renew it there", t.Address,
			day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case errors.As(err, &host):
		return fail(ExitRefused, "the certificate of Temporal at %s is for %s, not for %s: name one of them with "+
			"--temporal-tls-server-name or TEMPORAL_TLS_SERVER_NAME", t.Address, names(host.Certificate), name)
	case errors.As(err, &record):
		return fail(ExitRefused, "Temporal at %s does not speak TLS: remove the TLS settings, or give "+
			"--temporal-tls=false; or %s", t.Address, whereFrom)
	case strings.Contains(err.Error(), tlsRefusal):
		return t.refused(err)
	}
	return fail(ExitRefused, "no TLS with Temporal at %s: %v: %s", t.Address, err, whereFrom)
}

// refused returns the Failure for a TLS alert from Temporal. The alert means that Temporal requires a client
// certificate, or refuses ours.
func (t *Target) refused(err error) error {
	_, alert, _ := strings.Cut(err.Error(), tlsRefusal)
	certificates := t.tls.latest().Certificates
	if len(certificates) == 0 {
		return fail(ExitRefused, "Temporal at %s requires a client certificate (%s): give --temporal-tls-cert and "+
			"--temporal-tls-key, or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH", t.Address, alert)
	}
	by := ""
	if leaf := certificates[0].Leaf; leaf != nil {
		by = ", signed by \"" + issuer(leaf) + "\","
	}
	return fail(ExitRefused, "Temporal at %s refuses our client certificate%s%s with %q: use one that its authority "+
		"signed", t.Address, t.in(), by, alert)
}

func issuer(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	return c.Issuer.String()
}

func names(c *x509.Certificate) string {
	all := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return strings.Join(all, ", ")
}
