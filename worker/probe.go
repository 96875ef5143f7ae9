package worker

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// probeBound limits the duration of one probe.
const probeBound = 5 * time.Second

// probe returns a function that sends one request to the URL and fails when no answer arrives; any HTTP status counts
// as an answer. probe returns nil without a URL.
func probe(url string) func(ctx context.Context) error {
	if url == "" {
		return nil
	}
	return func(ctx context.Context) error {
		bounded, cancel := context.WithTimeout(ctx, probeBound)
		defer cancel()
		request, err := http.NewRequestWithContext(bounded, http.MethodHead, url, nil)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		// The probe opens a new connection, because an old connection does not prove that the network works now. A
		// redirect counts as an answer and is not followed.
		once := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := once.Do(request)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		return response.Body.Close()
	}
}
