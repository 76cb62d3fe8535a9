// SPDX-License-Identifier: Apache-2.0

package artifacts

// Here is what an operator copies from the folder manifests/: that kubectl renders it, that it says what its comments
// promise, and that it is what the tools write.

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	schedulerv1beta3 "k8s.io/kube-scheduler/config/v1beta3"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/source"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/test/cluster"
)

const (
	folder          = root + "/manifests"
	secondScheduler = folder + "/second-scheduler"
	configFile      = folder + "/config/my-scheduler.yaml"
	// placeholder stands for the hash in the versions of the manifests: each build has another.
	placeholder = "0123456789ab"
	// profile is the profile of the second scheduler, and the name of what it is made of.
	profile = "second-scheduler"
	// swapped is the profile that the swap brings, beside default-scheduler.
	swapped = "my-scheduler"
)

// update writes the manifests that tools make, to be read before they are committed: UPDATE=1 go test -C test
// ./artifacts
var update = os.Getenv("UPDATE") != ""

func TestBaseHasEveryPartOfASecondScheduler(t *testing.T) {
	var kinds []string
	for _, object := range render(t, secondScheduler) {
		meta := object.(metav1.Object)
		kind := object.GetObjectKind().GroupVersionKind()
		kinds = append(kinds, kind.Kind)
		namespace := "kube-system"
		if strings.HasPrefix(kind.Kind, "ClusterRole") {
			namespace = ""
		}
		if meta.GetNamespace() != namespace {
			t.Errorf("%s %s is in the namespace %q, want %q", kind.Kind, meta.GetName(), meta.GetNamespace(), namespace)
		}
		if meta.GetLabels()["app.kubernetes.io/name"] != profile {
			t.Errorf("%s %s: labels %v, want app.kubernetes.io/name: %s", kind.Kind, meta.GetName(), meta.GetLabels(), profile)
		}
	}
	slices.Sort(kinds)
	want := []string{
		"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "PodDisruptionBudget", "Role", "RoleBinding",
		"ServiceAccount",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("kinds: %v, want %v", kinds, want)
	}
}

// TestPodsOfTheExtenderAreConfined has what the API server does not check where the Pod Security is restricted, as in
// integration/leastprivilege.
func TestPodsOfTheExtenderAreConfined(t *testing.T) {
	objects := render(t, folder+"/scheduler-extender")
	container := the[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Command, "--client-ca-file=/etc/scheduler-extender/ca.crt") || !isTrue(container.SecurityContext.ReadOnlyRootFilesystem) ||
		!isFalse(the[*corev1.ServiceAccount](t, objects).AutomountServiceAccountToken) {
		t.Errorf("want clients with a certificate, a read-only root file system, and a token for no other pod: %+v", container)
	}
}

// TestPodsOfTheSecondSchedulerAreConfined is like TestPodsOfTheExtenderAreConfined.
func TestPodsOfTheSecondSchedulerAreConfined(t *testing.T) {
	objects := render(t, secondScheduler)
	pod := the[*appsv1.Deployment](t, objects).Spec.Template.Spec
	container, all := pod.Containers[0], pod.SecurityContext
	limits, requests := container.Resources.Limits, container.Resources.Requests
	for what, good := range map[string]bool{
		"it has the user and the group of the image": all.RunAsUser != nil && *all.RunAsUser == 65532 && all.RunAsGroup != nil && *all.RunAsGroup == 65532,
		"it writes nothing into the image":           isTrue(container.SecurityContext.ReadOnlyRootFilesystem),
		"it has nothing but its configuration": len(pod.Volumes) == 1 && pod.Volumes[0].ConfigMap != nil &&
			len(container.VolumeMounts) == 1 && container.VolumeMounts[0].ReadOnly,
		"it has a service account of its own":     pod.ServiceAccountName == profile && isTrue(pod.AutomountServiceAccountToken),
		"no other pod has the account's token":    isFalse(the[*corev1.ServiceAccount](t, objects).AutomountServiceAccountToken),
		"no services are in its environment":      isFalse(pod.EnableServiceLinks),
		"its memory is limited":                   !limits.Memory().IsZero(),
		"its CPU is not limited":                  limits.Cpu().IsZero(),
		"room is kept for it":                     !requests.Cpu().IsZero() && !requests.Memory().IsZero(),
		"the stock scheduler places it":           pod.SchedulerName == "",
		"it is not evicted for other pods":        pod.PriorityClassName == "system-cluster-critical",
		"what is on the node is not pulled again": container.ImagePullPolicy == corev1.PullIfNotPresent,
	} {
		if !good {
			t.Errorf("not so: %s", what)
		}
	}
	for name, probe := range map[string]*corev1.Probe{
		"startup": container.StartupProbe, "readiness": container.ReadinessProbe, "liveness": container.LivenessProbe,
	} {
		if probe == nil || probe.HTTPGet == nil {
			t.Errorf("there is no %s probe over HTTPS", name)
			continue
		}
		get := probe.HTTPGet
		isPort := func(p corev1.ContainerPort) bool { return p.Name == get.Port.StrVal && p.ContainerPort == 10259 }
		if get.Path != "/healthz" || get.Scheme != corev1.URISchemeHTTPS || !slices.ContainsFunc(container.Ports, isPort) {
			t.Errorf("the %s probe gets %s at %s over %s; want /healthz at 10259 over HTTPS",
				name, get.Path, get.Port.String(), get.Scheme)
		}
	}
}

func TestOneOfTheTwoSecondSchedulersIsAlwaysThere(t *testing.T) {
	objects := render(t, secondScheduler)
	deployment := the[*appsv1.Deployment](t, objects)
	pod := deployment.Spec.Template
	if replicas := deployment.Spec.Replicas; replicas == nil || *replicas != 2 {
		t.Error("there should be two replicas")
	}
	if rolling := deployment.Spec.Strategy.RollingUpdate; rolling == nil || rolling.MaxUnavailable.String() != "0" {
		t.Errorf("strategy %+v; want no replica fewer in a roll", rolling)
	}
	budget := the[*policyv1.PodDisruptionBudget](t, objects).Spec
	if !selects(t, budget.Selector, pod.Labels) || budget.MaxUnavailable == nil || budget.MaxUnavailable.String() != "1" {
		t.Errorf("disruption budget %+v; want one of the Deployment's pods at a time", budget)
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil || affinity.NodeAffinity == nil {
		t.Fatalf("affinity %+v; want the pods apart, and on the control plane", affinity)
	}
	// A required term would leave the second pod Pending where there is one node.
	apart := affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || !selects(t, apart[0].PodAffinityTerm.LabelSelector, pod.Labels) ||
		apart[0].PodAffinityTerm.TopologyKey != corev1.LabelHostname ||
		affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		t.Errorf("anti-affinity %+v; want the Deployment's pods on different nodes, preferred only", affinity.PodAntiAffinity)
	}
	// The image is on the nodes that it was loaded on, and in no registry.
	controlPlane := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.NodeSelectorOpExists},
		},
	}}}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if !reflect.DeepEqual(required, controlPlane) {
		t.Errorf("required is %+v; want nodes of the control plane", required)
	}
	for _, taint := range []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"} {
		taint := corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule}
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) }) {
			t.Errorf("the taint %s is not tolerated", taint.Key)
		}
	}
	for _, label := range []string{"component", "tier"} {
		if pod.Labels[label] != "" {
			t.Errorf("the label %s=%s is the stock scheduler's, by which it is found", label, pod.Labels[label])
		}
	}
}

func TestSecondSchedulerLeavesTheStockSchedulersPodsAndLeaseAlone(t *testing.T) {
	objects := render(t, secondScheduler)
	deployment := the[*appsv1.Deployment](t, objects)
	configMap := the[*corev1.ConfigMap](t, objects)
	pod := deployment.Spec.Template.Spec
	if pod.Volumes[0].ConfigMap.Name != configMap.Name {
		t.Errorf("the Deployment mounts %s, the ConfigMap is %s", pod.Volumes[0].ConfigMap.Name, configMap.Name)
	}
	mounted := filepath.Join(pod.Containers[0].VolumeMounts[0].MountPath, "config.yaml")
	if command := pod.Containers[0].Command; command[0] != "kube-scheduler" || !slices.Contains(command, "--config="+mounted) {
		t.Errorf("command %q; want kube-scheduler with --config=%s", command, mounted)
	}
	config := readConfig(t, []byte(configMap.Data["config.yaml"]))
	if file := config.ClientConnection.Kubeconfig; file != "" {
		t.Errorf("clientConnection.kubeconfig is %s; want none, so that the pod's own token is used", file)
	}
	if names := profileNames(config); !slices.Equal(names, []string{profile}) {
		t.Errorf("profiles: %q; want %s only", names, profile)
	}
	election := config.LeaderElection
	if !isTrue(election.LeaderElect) || election.ResourceNamespace != "kube-system" {
		t.Errorf("it should elect a leader, on a lease in kube-system, not in %q", election.ResourceNamespace)
	}
	var leases []string
	for _, rule := range the[*rbacv1.Role](t, objects).Rules {
		if slices.Contains(rule.Resources, "leases") && slices.Contains(rule.Verbs, "update") {
			leases = append(leases, rule.ResourceNames...)
		}
	}
	if !slices.Equal(leases, []string{election.ResourceName}) || election.ResourceName == "kube-scheduler" {
		t.Errorf("it elects its leader on the lease %q and may change %q; want one, not the stock scheduler's",
			election.ResourceName, leases)
	}
}

func TestProfileIsTheSameInTheSecondSchedulerAndInTheSwapButForItsName(t *testing.T) {
	second, other := readConfig(t, readFile(t, secondScheduler+"/config.yaml")), readConfig(t, readFile(t, configFile))
	at := slices.Index(profileNames(other), swapped)
	if at < 0 {
		t.Fatalf("%s has no profile %s", configFile, swapped)
	}
	mine, theirs := second.Profiles[0], other.Profiles[at]
	mine.SchedulerName, theirs.SchedulerName = nil, nil
	if !reflect.DeepEqual(mine, theirs) {
		t.Errorf("%s and %s/config.yaml have different profiles", configFile, secondScheduler)
	}
}

// Two schedulers that serve one name bind the same pods. A second scheduler runs beside the stock one or beside one
// that was swapped, with any of the configurations.
func TestSecondSchedulersServeNoNameOfAnotherShippedConfiguration(t *testing.T) {
	second, others := map[string]string{}, map[string]string{}
	for file, names := range shippedProfiles(t) {
		of := others
		if strings.HasPrefix(file, secondScheduler+"/") || strings.HasPrefix(file, folder+"/examples/second-scheduler") {
			of = second
		}
		for _, name := range names {
			of[name] = file
		}
	}
	for _, name := range []string{corev1.DefaultSchedulerName, swapped} {
		if others[name] == "" {
			t.Errorf("no configuration for the swap has the profile %s, by which pods ask for it", name)
		}
	}
	if second[profile] == "" {
		t.Errorf("no configuration of a second scheduler has the profile %s", profile)
	}
	for name, file := range second {
		if other := others[name]; other != "" {
			t.Errorf("%s and %s both have the profile %s; next: give the second scheduler's another name",
				file, other, name)
		}
	}
}

// shippedProfiles gives the profiles of all scheduler configurations below manifests, by file.
func shippedProfiles(t *testing.T) map[string][]string {
	t.Helper()
	profiles := map[string][]string{}
	err := filepath.WalkDir(folder, func(file string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".yaml" {
			return err
		}
		content := readFile(t, file)
		if !regexp.MustCompile(`(?m)^kind: KubeSchedulerConfiguration$`).Match(content) {
			return nil
		}
		// Of any version; the fields for the names are the same in each.
		var config struct {
			Profiles []struct{ SchedulerName string }
		}
		if err := yaml.Unmarshal(content, &config); err != nil {
			return err
		}
		for _, profile := range config.Profiles {
			profiles[file] = append(profiles[file], cmp.Or(profile.SchedulerName, corev1.DefaultSchedulerName))
		}
		return nil
	})
	if err != nil || len(profiles) < 10 {
		t.Fatalf("%d configurations: %v", len(profiles), err)
	}
	return profiles
}

func TestChangedConfigurationRollsTheDeployment(t *testing.T) {
	name := the[*appsv1.Deployment](t, render(t, secondScheduler)).Spec.Template.Spec.Volumes[0].ConfigMap.Name
	if !regexp.MustCompile(`-[a-z0-9]{10}$`).MatchString(name) {
		t.Errorf("the ConfigMap is called %s, without a hash of its content", name)
	}
}

func TestImageOfTheSecondSchedulerHasToBeSet(t *testing.T) {
	for kustomization, want := range map[string]string{
		secondScheduler:                       "registry.k8s.io/kube-scheduler:set-the-tag-in-kustomization.yaml",
		folder + "/examples/second-scheduler": "registry.example.com/team/kube-scheduler:v1.23.17_fork." + placeholder,
	} {
		if got := the[*appsv1.Deployment](t, render(t, kustomization)).Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("%s: image %s, want %s", kustomization, got, want)
		}
	}
}

func TestExampleOverlayLetsTheSecondSchedulerRunOnAnyNode(t *testing.T) {
	pod := the[*appsv1.Deployment](t, render(t, folder+"/examples/second-scheduler")).Spec.Template.Spec
	if pod.Affinity.NodeAffinity != nil || len(pod.NodeSelector) > 0 {
		t.Errorf("it requires nodes: affinity %+v, selector %v", pod.Affinity.NodeAffinity, pod.NodeSelector)
	}
	if pod.Affinity.PodAntiAffinity == nil {
		t.Error("its pods are not kept apart any more")
	}
}

func TestExamplesAskForTheProfileOfTheSwap(t *testing.T) {
	files, err := filepath.Glob(folder + "/examples/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		for _, object := range decode(t, readFile(t, file)) {
			var pod corev1.PodSpec
			switch object := object.(type) {
			case *corev1.Pod:
				pod = object.Spec
			case *appsv1.Deployment:
				pod = object.Spec.Template.Spec
				if !selects(t, object.Spec.Selector, object.Spec.Template.Labels) {
					t.Errorf("%s: the selector does not select its own pods", file)
				}
			default:
				t.Errorf("%s holds a %T, want a Pod or a Deployment", file, object)
				continue
			}
			if pod.SchedulerName != swapped {
				t.Errorf("%s: schedulerName %q, want %s", file, pod.SchedulerName, swapped)
			}
			if requests := pod.Containers[0].Resources.Requests; requests.Cpu().Cmp(resource.MustParse("0")) == 0 {
				t.Errorf("%s: the container requests no CPU", file)
			}
		}
	}
}

// swapOf is the swap that the manifests show: with the configuration of manifests/config, and placeholders for what
// differs from build to build and from moment to moment.
func swapOf(t *testing.T) manifest.Swap {
	t.Helper()
	sum := sha256.Sum256(readFile(t, configFile))
	hash := hex.EncodeToString(sum[:])
	version := pinned(t) + "+fork." + placeholder
	return manifest.Swap{
		Image:        "registry.k8s.io/kube-scheduler:" + strings.Replace(version, "+", "_", 1),
		ConfigFolder: "/var/lib/kube-scheduler-swap/configs/" + hash[:12],
		ConfigSHA256: hash,
		Version:      version,
		RestartedAt:  time.Date(2024, 1, 2, 3, 4, 5, 678901234, time.UTC),
	}
}

func TestStaticPodIsWhatASwapMakesOfKubeadms(t *testing.T) {
	swapped, err := manifest.Apply(readFile(t, root+"/build/swap/manifest/testdata/kubeadm/before.yaml"), swapOf(t))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, folder+"/static-pod/kube-scheduler.yaml", string(swapped.Manifest))
}

func TestKubeadmPatchIsWhatTheSwapToolWrites(t *testing.T) {
	patch, err := manifest.KubeadmPatch(swapOf(t))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, folder+"/kubeadm/"+manifest.KubeadmPatchFile, withoutHead(string(patch)))
}

func TestClusterConfigurationHasTheLinesThatTheSwapToolPrints(t *testing.T) {
	compare(t, folder+"/kubeadm/cluster-configuration.yaml", fmt.Sprintf(
		"apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: %s\n%s",
		pinned(t), manifest.ClusterConfigurationLines()))
}

// compare compares what follows a file's head with what it should be.
func compare(t *testing.T, file, want string) {
	t.Helper()
	content := string(readFile(t, file))
	head := strings.TrimSuffix(content, withoutHead(content))
	if head == "" {
		t.Errorf("%s does not say what it is for", file)
	}
	if content == head+want {
		return
	}
	if !update {
		t.Errorf("%s is not what the tools write:\n%s\nnext: UPDATE=1 go test -C test ./artifacts, and read what changed",
			file, want)
		return
	}
	if err := os.WriteFile(file, []byte(head+want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withoutHead takes the comment off that a file begins with.
func withoutHead(content string) string {
	for strings.HasPrefix(content, "#") {
		_, content, _ = strings.Cut(content, "\n")
	}
	return content
}

func pinned(t *testing.T) string {
	t.Helper()
	pin, err := source.ReadPin(root + "/upstream.version")
	if err != nil {
		t.Fatal(err)
	}
	return pin.Version
}

// readConfig reads a scheduler configuration. Its plugins' arguments are for the scheduler to judge, which other tests
// start with these configurations.
func readConfig(t *testing.T, content []byte) schedulerv1beta3.KubeSchedulerConfiguration {
	t.Helper()
	var config schedulerv1beta3.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func profileNames(config schedulerv1beta3.KubeSchedulerConfiguration) []string {
	var names []string
	for _, profile := range config.Profiles {
		if profile.SchedulerName == nil {
			names = append(names, corev1.DefaultSchedulerName)
		} else {
			names = append(names, *profile.SchedulerName)
		}
	}
	return names
}

// render gives the objects that kubectl makes of a kustomization.
func render(t *testing.T, kustomization string) []runtime.Object {
	t.Helper()
	var failure bytes.Buffer
	command := exec.CommandContext(t.Context(), cluster.Program(t, "KUBECTL"), "kustomize", kustomization)
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v\n%s", kustomization, err, failure.String())
	}
	return decode(t, output)
}

// decode reads the objects of a stream of manifests; a field that the API does not know is an error.
func decode(t *testing.T, manifests []byte) []runtime.Object {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	var objects []runtime.Object
	for _, document := range strings.Split(string(manifests), "\n---\n") {
		object, _, err := strict.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return objects
}

// the gives the one object of a type.
func the[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if object, ok := object.(T); ok {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d objects of the type %T, want one", len(found), *new(T))
	}
	return found[0]
}

func selects(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !compiled.Empty() && compiled.Matches(labels.Set(of))
}

func isTrue(value *bool) bool  { return value != nil && *value }
func isFalse(value *bool) bool { return value != nil && !*value }

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	return []byte(cluster.Read(t, file))
}
