// Package liqo is the real backend: it peers with provider clusters and makes virtual nodes through Liqo's own objects.
//
// It drives Liqo 1.0.2 to 1.2 with the API types of 1.1 and writes nothing but those objects, so it needs neither
// liqoctl nor Liqo's controllers as a library; it is the only package that imports github.com/liqotech/liqo.
//
// Establish writes, in this order, what `liqoctl network connect` (if the provider's network is of mode gateway) and
// `liqoctl authenticate` write, and adopts whatever of it exists:
//
//	consumer                             provider
//	Namespace liqo-tenant-<P>            Namespace liqo-tenant-<C>
//	Configuration <P>                    Configuration <C>            (addresses are mapped by Liqo on both sides)
//	                                     GatewayServer <C>            (made into a gateway by Liqo there)
//	GatewayClient <P>                    .                            (likewise here; the two may be exchanged)
//	PublicKey <P>                        PublicKey <C>                (the gateways connect)
//	                                     Secret liqo-nonce            (filled by Liqo there)
//	Secret liqo-signed-nonce             .                            (signed by Liqo here)
//	                                     Tenant <C>                   (answered with a certificate)
//	Identity controlplane-<P>            .                            (made into a kubeconfig by Liqo here)
//
// and waits until Liqo's own ForeignCluster says that this cluster reaches the provider. Join
// makes a ResourceSlice and, once it is accepted, the VirtualNode itself, so that labels and taints are on the Node
// from its first version on. Return and RemovePeering take the same things back in the reverse order.
//
// Ours is what carries our labels together with this hub and this consumer cluster (ours.go). What exists without them
// was made by hand, by the other direction of a two-way peering or by another hub: it is used, and never changed nor
// removed. The one exception is data.nonce of a left-over liqo-signed-nonce that no Tenant and no Identity uses any
// longer: Liqo can never peer again before somebody overwrites it.
//
// All reads go to the API servers: nothing is cached but this cluster's own id. Join polls, and looks at once when
// Watch sees a change of what it waits for. Objects of Liqo are changed by merge
// patch only, because a newer Liqo has fields that these types do not know.
package liqo
