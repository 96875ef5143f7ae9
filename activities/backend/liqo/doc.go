// Package liqo is the real backend: it peers with provider clusters and makes virtual nodes through Liqo's own objects.
//
// It drives Liqo 1.0.2 to 1.2 with the API types of 1.1 and writes only these objects, so it needs neither liqoctl nor
// Liqo's controllers as a library. It is the only package that imports github.com/liqotech/liqo.
//
// Establish writes the objects of `liqoctl network connect` (if the provider's network is of mode gateway) and of
// `liqoctl authenticate`, in this order, and adopts existing ones:
//
//	consumer                             provider
//	Namespace liqo-tenant-<P>            Namespace liqo-tenant-<C>
//	Configuration <P>                    Configuration <C>            (addresses are mapped by Liqo on both sides)
//	                                     GatewayServer <C>            (made into a gateway by Liqo there)
//	GatewayClient <P>                    .                            (and here; the two may be exchanged)
//	PublicKey <P>                        PublicKey <C>                (the gateways connect)
//	                                     Secret liqo-nonce            (filled by Liqo there)
//	Secret liqo-signed-nonce             .                            (signed by Liqo here)
//	                                     Tenant <C>                   (answered with a certificate)
//	Identity controlplane-<P>            .                            (made into a kubeconfig by Liqo here)
//
// It then waits until Liqo's own ForeignCluster reports that this cluster reaches the provider. Join makes a
// ResourceSlice and, once the slice is accepted, the VirtualNode itself, so that the Node has labels and taints from
// its first version on. Return and RemovePeering remove the same objects in the reverse order.
//
// An object is ours if it carries our labels with this hub and this consumer cluster (ours.go). An object without them
// was made by hand, by the other direction of a two-way peering or by another hub: it is used, and never changed nor
// removed. The one exception is data.nonce of an old liqo-signed-nonce that neither a Tenant nor an Identity uses any
// longer: unless it is overwritten, Liqo can never peer again.
//
// All reads go to the API servers: only this cluster's own id is cached. Join polls, and polls immediately when Watch
// sees a change of an object that it waits for. Objects of Liqo are changed by merge patch only, because a newer Liqo
// has fields that these types do not know.
package liqo
