// Package liqo is the real backend: it peers with provider clusters and makes virtual nodes through Liqo's own objects.
//
// It works with Liqo 1.0.2 to 1.2 and uses the API types of 1.1. It only reads and writes objects, so it needs
// neither liqoctl nor the code of Liqo's controllers. It is the only package that imports github.com/liqotech/liqo.
//
// Establish makes the objects that `liqoctl network connect` makes (if the provider's network has the mode gateway),
// and then the objects that `liqoctl authenticate` makes. It adopts existing objects:
//
//	consumer                             provider
//	Namespace liqo-tenant-<P>            Namespace liqo-tenant-<C>
//	Configuration <P>                    Configuration <C>            (addresses are mapped by Liqo on both sides)
//	                                     GatewayServer <C>            (made into a gateway by Liqo there)
//	GatewayClient <P>                    .                            (and here; the clusters may be exchanged)
//	PublicKey <P>                        PublicKey <C>                (the gateways connect)
//	                                     Secret liqo-nonce            (filled by Liqo there)
//	Secret liqo-signed-nonce             .                            (signed by Liqo here)
//	                                     Tenant <C>                   (answered with a certificate)
//	Identity controlplane-<P>            .                            (made into a kubeconfig by Liqo here)
//
// It then waits until Liqo's own ForeignCluster reports that this cluster reaches the provider. Join makes a
// ResourceSlice. Once the slice is accepted, Join, and not Liqo, makes the VirtualNode, so that the Node has its
// labels and taints from the moment of its creation. Return and RemovePeering remove the same objects in the reverse
// order.
//
// An object is ours if it carries our labels with this hub and this consumer cluster (ours.go). An object without
// these labels was made by hand, by the other direction of a two-way peering or by another hub. This package uses
// such an object, and never changes or removes it. There is one exception: it overwrites data.nonce of an old
// liqo-signed-nonce that neither a Tenant nor an Identity uses any longer, because Liqo could not peer again
// otherwise.
//
// All reads go to the API servers: only this cluster's own id is cached. Join polls. When Watch sees a change of an
// object that Join waits for, Join polls immediately. Objects of Liqo are changed by merge patch only, because a
// newer Liqo has fields that these types do not know.
package liqo
