package worker

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// probeBound is how long the probe may take.
const probeBound = 5 * time.Second

// probe asks a URL outside, and takes any answer for one: whether somebody is there is all that counts. It is nil
// without a URL.
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
		// A connection of an earlier probe proves nothing, and an answer is one wherever it points to.
		once := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := once.Do(request)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		return response.Body.Close()
	}
}
