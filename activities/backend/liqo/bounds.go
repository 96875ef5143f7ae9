package liqo

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/jsonguard"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// maxAnswer and maxIdentity are the maximum sizes of a provider's answer, in bytes. maxWords is the maximum length,
// in characters, of a provider's text in an error. A provider that exceeds a limit harms only its own nodes.
const (
	maxAnswer   = 16 << 20
	maxIdentity = 4 << 20 // for a request of the provider's identity only
	maxWords    = 500
)

// These constants are the maximum numbers of elements and fields in a provider's answer, for each MiB of the answer's
// maximum size. A slice has some ten elements and two hundred fields in 4 KiB. Without these limits, an answer of 4
// MiB of empty objects would take more than 1 GiB of memory.
const (
	elementsPerMiB = 3 << 10
	fieldsPerMiB   = 64 << 10
)

type boundKey struct{}

// withIdentityBound limits each answer to a request with the returned context to maxIdentity bytes.
func withIdentityBound(ctx context.Context) context.Context {
	return context.WithValue(ctx, boundKey{}, int64(maxIdentity))
}

// boundedTransport returns an error for a request whose answer is larger than its limit. The answer is not
// decompressed, and only JSON is decoded, so that a few bytes on the wire cannot become many in memory.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	most, ok := request.Context().Value(boundKey{}).(int64)
	if !ok {
		most = maxAnswer
	}
	response, err := b.RoundTripper.RoundTrip(withoutProtobuf(request))
	if err != nil {
		return nil, err
	}
	response.Body = boundedBody{http.MaxBytesReader(nil, response.Body, most)}
	if !isJSON(response) {
		response.Header.Set("Content-Type", "text/plain") // no decoder accepts plain text: YAML could expand, too
		return response, nil
	}
	mib := int(most >> 20)
	guard(response, jsonguard.Limits{Elements: elementsPerMiB * mib, Fields: fieldsPerMiB * mib})
	return response, nil
}

// withoutProtobuf returns a copy of the request that does not accept protobuf, because this client does not decode
// it. For metadata-only lists client-go requests protobuf, independently of the config (client-go
// metadata/metadata.go).
func withoutProtobuf(request *http.Request) *http.Request {
	var accepted []string
	for kind := range strings.SplitSeq(request.Header.Get("Accept"), ",") {
		if !strings.Contains(kind, "protobuf") {
			accepted = append(accepted, kind)
		}
	}
	changed := request.Clone(request.Context())
	changed.Header.Set("Accept", strings.Join(accepted, ","))
	return changed
}

// limitedTransport limits this cluster's answers, which contain data of providers. The granted resources of a slice,
// for example, could keep the decoder busy for minutes.
type limitedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil && isJSON(response) {
		guard(response, jsonguard.Limits{})
	}
	return response, err
}

// isJSON reports whether an answer is JSON; an answer without a content type counts as JSON.
func isJSON(response *http.Response) bool {
	kind := response.Header.Get("Content-Type")
	if kind == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(kind)
	return err == nil && media == "application/json"
}

func guard(response *http.Response, limits jsonguard.Limits) {
	response.Body = &guardedBody{Closer: response.Body, json: jsonguard.New(response.Body, limits)}
}

type guardedBody struct {
	io.Closer
	json *jsonguard.Reader
}

// Read implements io.Reader.
func (g *guardedBody) Read(into []byte) (int, error) {
	n, err := g.json.Read(into)
	if errors.Is(err, jsonguard.ErrTooMuch) {
		err = errorf(backend.ErrInvalid, "the provider's answer %v, and is not read to its end", err)
	}
	return n, err
}

// boundedBody replaces the error of http.MaxBytesReader by our own error.
type boundedBody struct{ io.ReadCloser }

// Read implements io.Reader.
func (b boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		err = errorf(backend.ErrInvalid, "the provider's answer is larger than %d MiB and is not read to its end",
			large.Limit>>20)
	}
	return n, err
}

// cutStatus shortens the message of an API server's answer, because our errors quote this message.
func cutStatus(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Message = shorten.Words(status.ErrStatus.Message, maxWords)
	}
	return err
}
