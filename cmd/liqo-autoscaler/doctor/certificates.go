package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// soon is the remaining validity below which doctor reports a certificate.
const soon = 14 * 24 * time.Hour

// certificates checks the connection from Cluster Autoscaler to the server: the cloud-config, both certificates, and
// the client names that the server accepts.
func (r *Report) certificates(ctx context.Context, in Installation, c *cluster) {
	for _, server := range c.servers {
		if _, plaintext := server.flag("insecure-plaintext"); plaintext {
			continue
		}
		name, _ := server.flag("tls-cert")
		own := r.certificate(ctx, in.Now, c, server, name)
		for _, ca := range c.autoscalers {
			r.connection(ctx, in.Now, c, ca, server, own)
		}
	}
}

// certificate reads the certificate in a file of the process. It returns nil when the file cannot be read.
func (r *Report) certificate(ctx context.Context, now time.Time, c *cluster, p process,
	name string) *x509.Certificate {
	content, err := c.file(ctx, p, name)
	if err != nil {
		r.add("certificate-unreadable", p.where(), "%v", err)
		return nil
	}
	block, _ := pem.Decode(content)
	if block == nil {
		r.add("certificate-unreadable", p.where(), "%s contains no certificate", name)
		return nil
	}
	found, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		r.add("certificate-unreadable", p.where(), "%s: %v", name, err)
		return nil
	}
	end := found.NotAfter.UTC().Format(time.RFC3339)
	r.examined("%s: certificate %s is valid until %s", p.where(), name, end)
	switch left := found.NotAfter.Sub(now); {
	case left <= 0:
		r.add("certificate-ended", p.where(), "%s expired on %s", name, end)
	case left < soon:
		r.add("certificate-ends", p.where(), "%s expires on %s", name, end)
	}
	return found
}

// cloudConfig is the content of Cluster Autoscaler's --cloud-config file (CA cloudprovider/externalgrpc/README.md).
type cloudConfig struct {
	Address string `json:"address"`
	Cert    string `json:"cert"`
	Key     string `json:"key"`
	CACert  string `json:"cacert"`
}

// connection checks whether Cluster Autoscaler's TLS connection to the server would succeed.
func (r *Report) connection(ctx context.Context, now time.Time, c *cluster, ca, server process, own *x509.Certificate) {
	name, _ := ca.flag("cloud-config")
	content, err := c.file(ctx, ca, name)
	var config cloudConfig
	if err == nil {
		err = yaml.Unmarshal(content, &config)
	}
	if err == nil && config.Cert == "" {
		err = errors.New("it has no cert, so the server rejects Cluster Autoscaler")
	}
	if err != nil {
		r.add("autoscaler-config", ca.where(), "--cloud-config=%s: %v", name, err)
		return
	}
	host, _, err := net.SplitHostPort(config.Address)
	if err != nil {
		r.add("autoscaler-config", ca.where(), "address %q: %v", config.Address, err)
		return
	}
	if own != nil && own.VerifyHostname(host) != nil {
		r.add("certificate-name", server.where(), "its certificate is for %s, but Cluster Autoscaler connects to %s",
			strings.Join(own.DNSNames, ", "), host)
	}
	if client := r.certificate(ctx, now, c, ca, config.Cert); client != nil {
		r.clientAccepted(ctx, now, c, server, client)
	}
}

// clientAccepted checks whether the server accepts Cluster Autoscaler's client certificate.
func (r *Report) clientAccepted(ctx context.Context, now time.Time, c *cluster, server process,
	client *x509.Certificate) {
	if names, ok := server.flag("tls-allowed-names"); ok && names != "" {
		has := append(slices.Clone(client.DNSNames), client.Subject.CommonName)
		if !slices.ContainsFunc(strings.Split(names, ","), func(n string) bool { return slices.Contains(has, n) }) {
			r.add("client-name", server.where(), "it accepts the names %s, but Cluster Autoscaler's certificate has the names "+
				"%s", names,
				strings.Join(has, ", "))
		}
	}
	file, _ := server.flag("tls-client-ca")
	authority, err := c.file(ctx, server, file)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(authority) {
		r.add("certificate-unreadable", server.where(), "%s contains no certificate of an authority: %v", file, err)
		return
	}
	_, err = client.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: validTime(client, now),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		r.add("client-authority", server.where(), "it does not accept Cluster Autoscaler's certificate: %v", err)
	}
}

// validTime returns the time at which a certificate is verified: now or, if the certificate has expired, the end of
// its validity. Another check reports that the certificate has expired.
func validTime(c *x509.Certificate, now time.Time) time.Time {
	if now.After(c.NotAfter) {
		return c.NotAfter
	}
	return now
}
