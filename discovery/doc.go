// Package discovery knows which provider clusters offer capacity, and on what terms.
//
// A Source lists offers as somebody wrote them down: a file (discovery/file), labelled Secrets (discovery/secrets),
// the discovery server's API (discovery/client). What they say about an offer's cluster is not trusted: Resolve
// reads the provider id from each cluster itself, over the offer's credentials, and makes a Catalog of the Source.
// Merge makes one Catalog of several.
//
//	Source -> Resolve (expired? identify, bounded and cached; two of one provider? epoch) -> Catalog
//	Catalog, Catalog, ... -> Merge -> Catalog
//
// One bad offer never hides the others: it is left out and reported as a Problem that names it. Nothing in an offer, a
// Problem or an error is a secret: credentials are references only.
package discovery
