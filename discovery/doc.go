// Package discovery finds the provider clusters that offer capacity, and their terms.
//
// A Source lists offers as they are written: in a file (discovery/file), in labelled Secrets (discovery/secrets) or
// behind the discovery server's API (discovery/client). The provider ids in these offers are not trusted: Resolve reads
// the provider id from each cluster over the offer's credentials, and makes a Catalog of the Source. Merge combines
// several Catalogs into one.
//
//	Source -> Resolve (drop expired offers, identify clusters, one offer per provider, epoch) -> Catalog
//	Catalog, Catalog, ... -> Merge -> Catalog
//
// One invalid offer never hides the valid offers: it is omitted and reported in a Problem that names it. No offer,
// Problem or error contains a secret: credentials are references only.
package discovery
