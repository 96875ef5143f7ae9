package nodes

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MergePatch sends a merge patch with the content of the parameter change. It changes only the fields that the patch
// contains.
func MergePatch(ctx context.Context, cluster client.Client, object client.Object, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return cluster.Patch(ctx, object, client.RawPatch(types.MergePatchType, data))
}

// DeleteThis deletes exactly the object that was read, and never a later object of the same name.
func DeleteThis(ctx context.Context, cluster client.Client, object client.Object) error {
	uid := object.GetUID()
	return client.IgnoreNotFound(cluster.Delete(ctx, object, client.Preconditions{UID: &uid}))
}
