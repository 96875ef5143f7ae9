// Package server is the discovery server: an HTTPS JSON API to which writers (agents of providers, or people with curl)
// send offers, and from which workers list them. The API is described in openapi.yaml, which the server also serves.
//
// Each writer has a bearer token, of which the server stores only the SHA-256. An offer belongs to the writer that put
// it. Every offer expires, by default after a day. The server stores no secrets: credentials are references to Secrets
// in the consumer cluster.
package server
