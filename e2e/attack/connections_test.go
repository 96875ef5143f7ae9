package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// from dials from this address of the machine, so that attackers and honest clients have different addresses.
func from(ip string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 2 * time.Second}
}

// halfHandshakes opens many connections, begins a handshake on each, and keeps them open.
func halfHandshakes(address string, many int) attack {
	return attack{name: "half-handshakes", once: func(ctx context.Context, requests *atomic.Int64) {
		var held []net.Conn
		defer func() {
			for _, c := range held {
				c.Close()
			}
		}()
		for range many {
			c, err := from("127.0.0.9").DialContext(ctx, "tcp", address)
			if err != nil {
				break
			}
			held = append(held, c)
			_, _ = c.Write([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01})
			requests.Add(1)
		}
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
	}}
}

// pipelined requests the metrics on five connections again and again, and reads no answer.
func pipelined(metrics string) attack {
	target, _ := url.Parse(metrics)
	head := []byte("GET " + target.Path + " HTTP/1.1\r\nHost: x\r\n\r\n")
	return attack{name: "unread-metrics", hands: 5, once: func(ctx context.Context, requests *atomic.Int64) {
		c, err := from("127.0.0.9").DialContext(ctx, "tcp", target.Host)
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(2048)
		for ctx.Err() == nil {
			_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			if _, err := c.Write(head); err == nil {
				requests.Add(1)
			} else if !errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
		}
	}}
}

// longChain returns a client certificate with a hundred authorities of the same name. None of these authorities has
// signed it, so a server that searches for its issuer verifies a hundred signatures.
func longChain(t *testing.T) *tls.Certificate {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
		require.NoError(t, err)
		return k
	}
	parent := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf, its := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "l"},
		NotBefore: parent.NotBefore, NotAfter: parent.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, key()
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, its.Public(), key())
	require.NoError(t, err)
	chain := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: its}
	for i := range 100 {
		k := key()
		parent.SerialNumber = big.NewInt(int64(10 + i))
		der, err := x509.CreateCertificate(rand.Reader, parent, parent, k.Public(), k)
		require.NoError(t, err)
		chain.Certificate = append(chain.Certificate, der)
	}
	return chain
}

// bad returns an HTTP client of an attacker, with a client certificate unless it is nil.
func bad(certificate *tls.Certificate, anew bool) *http.Client {
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // an attacker accepts every server
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: config,
		ForceAttemptHTTP2: true, DisableKeepAlives: anew, DialContext: from("127.0.0.9").DialContext}}
}
