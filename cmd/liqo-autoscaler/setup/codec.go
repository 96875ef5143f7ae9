package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/codec"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

func newCodec(c *connect.Common) *cobra.Command {
	var listen string
	var origins []string
	cmd := &cobra.Command{
		Use:   "codec",
		Short: "Serve the codec on this machine, so that the Temporal UI and the temporal CLI show payloads",
		Long: `Serve the codec on this machine, so that the Temporal UI and the temporal CLI show payloads. They then also show the
larger memos of node groups, which are compressed. The codec decrypts for every program that can reach it. Therefore
it listens only on a loopback address, and answers only pages of --ui-origin. It runs until it is interrupted.`,
		Example: `  liqo-autoscaler temporal codec --temporal-codec-key-file keys
  temporal workflow describe --workflow-id nodegroup/standard --codec-endpoint http://127.0.0.1:8234`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !codec.Loopback(listen) {
				return fmt.Errorf("--listen %s: use a loopback address, such as 127.0.0.1:8234", listen)
			}
			if c.Temporal.CodecKeys == "" {
				return errors.New("--temporal-codec-key-file is missing: nothing can be decrypted without keys")
			}
			keys, err := codec.Open(c.Temporal.CodecKeys, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
			if err != nil {
				return fmt.Errorf("--temporal-codec-key-file: %w", err)
			}
			return serveCodec(cmd.Context(), listen, codec.Handler(unpacked{keys}, origins), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8234", "loopback address to serve on")
	cmd.Flags().StringSliceVar(&origins, "ui-origin", []string{"http://127.0.0.1:8233", "http://localhost:8233"},
		"origins of Temporal UIs whose pages may use the codec")
	return cmd
}

func serveCodec(ctx context.Context, listen string, handler http.Handler, out io.Writer) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("serve the codec: %w (give another address with --listen)", err)
	}
	server := &http.Server{Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 16 << 10}
	fmt.Fprintf(out, "codec endpoint: http://%s\n", l.Addr())
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the codec: %w", err)
	}
	return nil
}

// unpacked is a codec for tools that show payloads. In addition to decrypting them, it decompresses memos.
type unpacked struct{ converter.PayloadCodec }

// Decode implements converter.PayloadCodec.
func (u unpacked) Decode(all []*common.Payload) ([]*common.Payload, error) {
	plain, err := u.PayloadCodec.Decode(all)
	if err != nil {
		return nil, err
	}
	for i, p := range plain {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != workflows.EncodingGzip {
			continue
		}
		var text json.RawMessage
		if err := fleet.Decode(p.GetData(), &text); err != nil {
			return nil, fmt.Errorf("unpack a memo: %w", err)
		}
		plain[i] = &common.Payload{Data: text,
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}}
	}
	return plain, nil
}
