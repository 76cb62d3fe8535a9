// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerv1beta3 "k8s.io/kube-scheduler/config/v1beta3"
	"sigs.k8s.io/yaml"
)

const nodeLoadOverlay = folder + "/examples/second-scheduler-node-load"

// nodeLoadArgs has the arguments that name files and servers.
type nodeLoadArgs struct {
	Prometheus struct {
		Endpoints       []string
		TLS             struct{ CAFile, ServerName string }
		BearerTokenFile string
	}
	NodeMatch map[string]string
	Resources []map[string]any
}

func TestNodeLoadSecondSchedulerFiles(t *testing.T) {
	objects := render(t, nodeLoadOverlay)
	pod := the[*appsv1.Deployment](t, objects).Spec.Template
	configMap := configMapOf(t, objects, pod.Spec)
	config := readConfig(t, []byte(configMap.Data["config.yaml"]))
	args := argsOfNodeLoad(t, config)

	mounted := map[string]string{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		mounted[mount.Name] = mount.MountPath
	}
	var token *corev1.ServiceAccountTokenProjection
	var files []string
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil {
				token = source.ServiceAccountToken
				files = append(files, path.Join(mounted[volume.Name], token.Path))
			}
			if source.ConfigMap != nil {
				for _, item := range source.ConfigMap.Items {
					files = append(files, path.Join(mounted[volume.Name], item.Path))
				}
			}
		}
	}
	if token == nil || token.ExpirationSeconds == nil || *token.ExpirationSeconds < 600 {
		t.Errorf("token %+v; want a projected one that is renewed", token)
	}
	if want := []string{args.Prometheus.BearerTokenFile, args.Prometheus.TLS.CAFile}; !reflect.DeepEqual(files, want) {
		t.Errorf("mounted are %q; the configuration reads %q", files, want)
	}
	for _, endpoint := range args.Prometheus.Endpoints {
		if !strings.HasPrefix(endpoint, "https://") {
			t.Errorf("the token goes to %s in plain text", endpoint)
		}
	}

	// As in the base: its own lease, and only its own profile.
	base := readConfig(t, readFile(t, secondScheduler+"/config.yaml"))
	if !reflect.DeepEqual(config.LeaderElection, base.LeaderElection) || !slices.Equal(profileNames(config), profileNames(base)) ||
		config.ClientConnection.Kubeconfig != "" {
		t.Errorf("leader election, profiles or kubeconfig differ from the base")
	}
}

// TestNodeLoadSecondSchedulerRights checks that the rules are those of the base and one more, which is not about
// objects of the cluster.
func TestNodeLoadSecondSchedulerRights(t *testing.T) {
	rules := func(kustomization string) (rules []rbacv1.PolicyRule) {
		for _, object := range render(t, kustomization) {
			switch object := object.(type) {
			case *rbacv1.ClusterRole:
				rules = append(rules, object.Rules...)
			case *rbacv1.Role:
				rules = append(rules, object.Rules...)
			case *rbacv1.ClusterRoleBinding:
				if subject := object.Subjects[0]; subject.Name != profile || subject.Namespace != "kube-system" {
					t.Errorf("%s: %s is bound to %+v", kustomization, object.Name, subject)
				}
			}
		}
		return rules
	}
	before := rules(secondScheduler)
	more := slices.DeleteFunc(rules(nodeLoadOverlay), func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(before, func(known rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, known) })
	})
	want := []rbacv1.PolicyRule{{NonResourceURLs: []string{"/api/v1/query"}, Verbs: []string{"create", "get"}}}
	if !reflect.DeepEqual(more, want) {
		t.Errorf("it may also %+v, want %+v", more, want)
	}

	objects := render(t, nodeLoadOverlay)
	policy := the[*networkingv1.NetworkPolicy](t, objects)
	from := policy.Spec.Ingress[0].From[0]
	if policy.Namespace != "monitoring" || !selects(t, from.PodSelector, the[*appsv1.Deployment](t, objects).Spec.Template.Labels) {
		t.Errorf("the policy in %s lets in pods with %+v", policy.Namespace, from.PodSelector)
	}
}

// configMapOf returns the ConfigMap that a pod mounts, among those of a kustomization.
func configMapOf(t *testing.T, objects []runtime.Object, pod corev1.PodSpec) *corev1.ConfigMap {
	t.Helper()
	for _, object := range objects {
		if configMap, is := object.(*corev1.ConfigMap); is && slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool {
			return volume.ConfigMap != nil && volume.ConfigMap.Name == configMap.Name
		}) {
			return configMap
		}
	}
	t.Fatal("no ConfigMap is mounted")
	return nil
}

// argsOfNodeLoad returns the arguments of the one profile that has NodeLoad.
func argsOfNodeLoad(t *testing.T, config schedulerv1beta3.KubeSchedulerConfiguration) nodeLoadArgs {
	t.Helper()
	for _, profile := range config.Profiles {
		for _, plugin := range profile.PluginConfig {
			if plugin.Name != "NodeLoad" {
				continue
			}
			var args nodeLoadArgs
			if err := yaml.UnmarshalStrict(plugin.Args.Raw, &args); err != nil {
				t.Fatal(err)
			}
			return args
		}
	}
	t.Fatal("no profile has args for NodeLoad")
	return nodeLoadArgs{}
}
