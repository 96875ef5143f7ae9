// Package server is the discovery server: an HTTPS JSON API. Writers, which are agents of providers or people with
// curl, send offers to it, and workers list the offers. The API is described in openapi.yaml, which clients can also
// get from the server.
//
// Each writer has a bearer token, of which the server knows only the SHA-256, or a client certificate. An offer
// belongs to the writer that wrote it. Every offer expires, by default after a day. The server stores no secrets:
// credentials are references to Secrets in the consumer cluster.
package server
