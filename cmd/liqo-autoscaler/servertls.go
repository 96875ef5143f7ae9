package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
)

// serverTLS are the files of mutual TLS between Cluster Autoscaler and the gRPC server; none of them means plaintext.
type serverTLS struct{ files grpcserver.TLSFiles }

func (s *serverTLS) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.files.Cert, "tls-cert", "", "file with the server's certificate chain, PEM; with --tls-key and --tls-client-ca it turns on mutual TLS")
	f.StringVar(&s.files.Key, "tls-key", "", "file with the certificate's key, PEM")
	f.StringVar(&s.files.ClientCA, "tls-client-ca", "", "file with the authorities, PEM, that may sign Cluster Autoscaler's certificate")
}

// options fails when only some of the files are named, or when one cannot be read.
func (s *serverTLS) options(log *slog.Logger) (o grpcserver.ServeOptions, err error) {
	if s.files == (grpcserver.TLSFiles{}) {
		return o, nil
	}
	o.Credentials, err = grpcserver.TLS(s.files, log)
	return o, err
}
