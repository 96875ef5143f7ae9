package parts

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
)

// ServerTLS holds the flags for the transport between Cluster Autoscaler and the gRPC server. The transport is mutual
// TLS, or plaintext if a flag permits it.
type ServerTLS struct {
	Files     grpcserver.TLSFiles
	allowed   []string
	plaintext bool
	expander  bool
	named     func() bool // distinguishes an empty list of permitted names from a missing list
}

// Register adds the flags.
func (s *ServerTLS) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.Files.Cert, "tls-cert", "",
		"PEM file with the server's certificate and its chain; with --tls-key and --tls-client-ca it enables mutual TLS")
	f.StringVar(&s.Files.Key, "tls-key", "", "PEM file with the key of the server's certificate")
	f.StringVar(&s.Files.ClientCA, "tls-client-ca", "",
		"PEM file with the authorities that may sign Cluster Autoscaler's certificate")
	f.StringSliceVar(&s.allowed, "tls-allowed-names", nil, "names; Cluster Autoscaler's certificate must have one of "+
		"these names as a SAN or as its common name (default: any certificate of --tls-client-ca)")
	f.BoolVar(&s.expander, "grpc-expander", false, "also serve Cluster Autoscaler's --expander=grpc on the same port. "+
		"These calls need no client certificate: every client that reaches the port may request the best node group, but "+
		"may call nothing else")
	s.named = func() bool { return f.Changed("tls-allowed-names") }
	RegisterPlaintext(cmd, &s.plaintext)
}

// RegisterPlaintext adds the flag that permits plaintext.
func RegisterPlaintext(cmd *cobra.Command, plaintext *bool) {
	cmd.Flags().BoolVar(plaintext, "insecure-plaintext", false,
		"serve without TLS: every client of the port can add and remove nodes")
}

// Options returns the options of the gRPC server's transport. It returns an error if neither TLS nor plaintext is
// set, or both are. It also returns an error if only some of the three TLS files are set, or a TLS file cannot be
// read.
func (s *ServerTLS) Options(log *slog.Logger) (o grpcserver.ServeOptions, err error) {
	none := s.Files == (grpcserver.TLSFiles{})
	o.Expander = s.expander
	switch {
	case s.named != nil && s.named() && len(s.allowed) == 0:
		return o, errors.New("--tls-allowed-names is empty: name the accepted clients, or leave the flag out to accept " +
			"every certificate of --tls-client-ca")
	case none && len(s.allowed) > 0:
		return o, errors.New("--tls-allowed-names needs mutual TLS: give --tls-cert, --tls-key and --tls-client-ca")
	case none && s.plaintext:
		log.Warn("serving plaintext: anyone who can reach the port can add and remove nodes")
		return o, nil
	case none:
		return o, errors.New("no TLS: give --tls-cert, --tls-key and --tls-client-ca, or --insecure-plaintext to let " +
			"every client of the port add and remove nodes")
	case s.plaintext:
		return o, errors.New("--insecure-plaintext and --tls-*: give only one")
	}
	files := s.Files
	files.Anonymous = s.expander
	o.Credentials, err = grpcserver.TLS(files, s.allowed, log)
	return o, err
}

// LoopbackOrPlaintext returns an error if other machines can connect to the address, and the flag that permits
// plaintext is not set.
func LoopbackOrPlaintext(listen string, plaintext bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if ip := net.ParseIP(host); plaintext || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--listen %s: dev serves plaintext: use 127.0.0.1, or give --insecure-plaintext to let every "+
		"client of the port add and remove nodes", listen)
}
