// Package command implements the command externalgrpc-conformance.
package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/conformance"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
)

type conformanceFlags struct {
	conformance.Options
	change        bool
	output        string
	cert, key, ca string
}

// New returns the command.
func New() *cobra.Command {
	var f conformanceFlags
	cmd := &cobra.Command{
		Use:           "externalgrpc-conformance ADDRESS",
		Version:       cli.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Short:         "Check any externalgrpc provider against the assumptions of Cluster Autoscaler",
		Long: `Check an externalgrpc provider, this one or any other, against assumptions that Cluster Autoscaler makes and does not
verify. The command prints one line per rule. For each failure it prints the observation, the place where Cluster
Autoscaler relies on the rule, and the fix. It needs access only to the gRPC server, which it calls as Cluster
Autoscaler does.

Without --change the command only reads. With --change it requests new nodes in the node group --group and releases
them immediately, some twenty times. Use a group that can grow by 3 to 20 nodes and has no pending instances, and stop
the Cluster Autoscaler that uses it. If the group can grow by 10, a rule deletes as many nodes concurrently as Cluster
Autoscaler does. Another rule grows --group to its max and then requests a node in --second, without a Refresh in
between: give a group that uses the same machines. A provider that breaks a rule may keep nodes; the last line reports
them.

The command exits with 0 when no rule fails, and with 1 when a rule fails or the provider cannot be reached.`,
		Example: "  externalgrpc-conformance 127.0.0.1:8086\n" +
			"  externalgrpc-conformance 127.0.0.1:8086 --change --group standard --second gpu -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want the provider's address, as in \"externalgrpc-conformance 127.0.0.1:8086\"")
			}
			if _, _, err := net.SplitHostPort(args[0]); err != nil {
				return fmt.Errorf("the provider's address: %w", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&f.change, "change", false, "also check the rules that change the target size of --group")
	cmd.Flags().StringVar(&f.Group, "group", "", "node group to change")
	cmd.Flags().StringVar(&f.Second, "second", "", "node group that may share capacity with --group; one node is "+
		"created in it "+
		"and deleted again")
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 5*time.Second, "how long each call may take, like grpc_timeout of "+
		"Cluster Autoscaler")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "",
		"PEM file with the client certificate and its chain; with --tls-key and --tls-ca it enables mutual TLS")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "PEM file with the key of the client certificate")
	cmd.Flags().StringVar(&f.ca, "tls-ca", "", "PEM file with the authorities for the server's certificate")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "what to print: "+strings.Join(output.Formats, ", "))
	return cmd
}

func (f conformanceFlags) check() error {
	switch {
	case f.change && f.Group == "":
		return errors.New("--change needs --group: the node group to change")
	case !f.change && f.Group != "":
		return errors.New("--group needs --change: otherwise nothing is changed, and all node groups are read")
	case f.Second != "" && (f.Group == "" || f.Second == f.Group):
		return errors.New("--second needs --group, and names another node group")
	case f.Timeout <= 0:
		return fmt.Errorf("--timeout %s: give more than 0", f.Timeout)
	}
	return output.CheckFormat(f.output)
}

// credentials returns mutual TLS or plaintext credentials. Cluster Autoscaler supports no other kind.
func (f conformanceFlags) credentials() (credentials.TransportCredentials, error) {
	if f.cert == "" && f.key == "" && f.ca == "" {
		return insecure.NewCredentials(), nil
	}
	if f.cert == "" || f.key == "" || f.ca == "" {
		return nil, errors.New("give --tls-cert, --tls-key and --tls-ca, or none of them for plaintext: Cluster Autoscaler " +
			"has no TLS without all three")
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	authorities, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("--tls-ca: no PEM certificate in %s", f.ca)
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		RootCAs: pool}), nil
}

// run checks the provider and prints the results, even if the check ends early. It returns an error if a rule failed.
func (f conformanceFlags) run(ctx context.Context, address string, out io.Writer) error {
	secure, err := f.credentials()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secure))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	defer conn.Close()
	client := protos.NewCloudProviderClient(conn)
	if err := f.reach(ctx, conn, client); err != nil {
		return fmt.Errorf("no server answers at %s: %w", address, err)
	}
	results, err := conformance.Check(ctx, client, f.Options)
	if len(results) == 0 {
		return err
	}
	seen := judged{Address: address, Group: f.Group, Rules: results}
	if n := seen.Count(conformance.Failed); n > 0 {
		err = errors.Join(fmt.Errorf("%d of %d rules fail", n, len(results)), err)
	}
	return errors.Join(output.Print(out, f.output, output.StyleFor(out), seen), err)
}

// reach returns an error if no server responds at the address. Any response, even an error, is enough.
func (f conformanceFlags) reach(ctx context.Context, conn *grpc.ClientConn, client protos.CloudProviderClient) error {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	_, err := client.GPULabel(ctx, &protos.GPULabelRequest{})
	away := status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded // no response
	if away && conn.GetState() != connectivity.Ready {
		return err
	}
	return nil
}
