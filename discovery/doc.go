// Package discovery finds the provider clusters that offer capacity, and the terms of their offers.
//
// A Source lists offers as they are written: in a file (discovery/file), in labelled Secrets (discovery/secrets) or
// on the discovery server (discovery/client). The provider ids in these offers are not trusted. Resolve makes a
// Catalog of a Source: it reads the provider id from each cluster with the offer's credentials. Merge combines
// several Catalogs into one.
//
//	Source -> Resolve (drop expired offers, identify clusters, one offer per provider, epoch) -> Catalog
//	Catalog, Catalog, ... -> Merge -> Catalog
//
// An invalid offer does not affect the valid offers: a Catalog omits the invalid offer and reports it by name in a
// Problem. Offers, Problems and errors contain no secrets: credentials are only references.
package discovery
