package liqo

import (
	"context"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// How much a provider may answer to one request, in bytes as they are read, and how much of its words is repeated, in
// characters. A provider that floods harms only its own nodes.
const (
	maxAnswer   = 16 << 20
	maxIdentity = 4 << 20 // while it is only asked who it is
	maxWords    = 500
)

type boundKey struct{}

// withBound bounds each answer to a request under this context, in place of maxAnswer.
func withBound(ctx context.Context, most int64) context.Context {
	return context.WithValue(ctx, boundKey{}, most)
}

// bounded fails a request whose answer is larger than its bound. Nothing is decompressed below it, so that a few bytes
// on the wire cannot become many here.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	most, ok := request.Context().Value(boundKey{}).(int64)
	if !ok {
		most = maxAnswer
	}
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: most, most: most}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left, most int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, tooLarge(b.most)
	}
	if int64(len(into)) > b.left+1 { // one more shows that there is more
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return n, tooLarge(b.most)
	}
	return n, err
}

func tooLarge(most int64) error {
	return say(backend.ErrInvalid, "the provider's answer is larger than %d MiB and is not read to its end", most>>20)
}

// cutStatus shortens the message of an API server's answer, which errors repeat.
func cutStatus(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Message = shorten.To(status.ErrStatus.Message, maxWords)
	}
	return err
}
