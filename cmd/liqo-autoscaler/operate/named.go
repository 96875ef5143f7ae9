package operate

import (
	"errors"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// errPodName is the error for an argument that does not have the form of a pod's name.
var errPodName = errors.New("want the pod as NAMESPACE/NAME, as in \"liqo-autoscaler explain pod default/web-0\"")

// isPod reports whether a name has the form of a pod's name, NAMESPACE/NAME. The id of an instance also contains
// slashes, but is not the name of a pod.
func isPod(name string) bool {
	return strings.Contains(name, "/") && !strings.HasPrefix(name, fleet.ProviderIDScheme)
}

// instanceNamed returns the name of the instance for an instance id, a Node's name or an instance's name.
func instanceNamed(name string) string {
	if _, instance, ok := fleet.ParseInstanceID(name); ok {
		return instance
	}
	return fleet.InstanceOfKey(name)
}

// podNamed splits NAMESPACE/NAME. If only NAME is given, the namespace is the one of the kubeconfig's context.
func podNamed(name, kubeconfig string) (namespace, pod string, err error) {
	if isPod(name) {
		namespace, pod, _ = strings.Cut(name, "/")
	} else {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = kubeconfig
		pod = name
		if namespace, _, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).Namespace(); err != nil {
			return "", "", err
		}
	}
	if namespace == "" || pod == "" || strings.Contains(pod, "/") {
		return "", "", errPodName
	}
	return namespace, pod, nil
}
