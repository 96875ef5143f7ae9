package e2e_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// leastAgent returns a file with the minimal values of the agent's chart.
func leastAgent(t *testing.T) string {
	return filepath.Join(sources(t), "deploy", "helm", "liqo-autoscaler-agent", "ci", "least-values.yaml")
}

// chartArgs renders a template of one of our charts with the given arguments for helm. It returns the arguments of
// the container in this template. In them it replaces the path of each mounted Secret by a folder. The parameter
// secrets contains the folders by the Secrets' names.
func (s *stack) chartArgs(ctx context.Context, chart, template string, secrets map[string]string,
	args ...string) []string {
	s.t.Helper()
	rendered := s.render(ctx, chart, append(args, "--show-only", "templates/"+template+".yaml")...)
	for document := range strings.SplitSeq(string(rendered), "\n---\n") {
		var d appsv1.Deployment
		require.NoError(s.t, yaml.Unmarshal([]byte(document), &d))
		if d.Kind != "Deployment" {
			continue
		}
		pod, folders := d.Spec.Template.Spec, []string{}
		for _, m := range pod.Containers[0].VolumeMounts {
			for _, v := range pod.Volumes {
				if v.Name == m.Name && v.Secret != nil && secrets[v.Secret.SecretName] != "" {
					folders = append(folders, m.MountPath+"/", secrets[v.Secret.SecretName]+"/")
				}
			}
		}
		found := pod.Containers[0].Args
		for i := range found {
			found[i] = strings.NewReplacer(folders...).Replace(found[i])
		}
		return found
	}
	require.Fail(s.t, "no Deployment", "%s", rendered)
	return nil
}
