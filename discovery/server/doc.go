// Package server is the discovery server: an HTTPS JSON API where writers (agents of providers, or people with curl)
// put the offers that workers list. The API is described in openapi.yaml, which the server also serves.
//
// Writers carry a bearer token each; only its SHA-256 is kept. An offer belongs to the writer who put it, and every
// offer ends: without an expiry of its own after a day. Nothing secret is stored: credentials are references to Secrets
// of the consumer cluster.
package server
