// Runs the model of export.py without Python: loads the ops' library, then the compiled model.
//
//   run LIBRARY FOLDER [cpu|cuda]
//
// Prints how far the output is from eager torch's; exits with 0 where they agree.
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

torch::Tensor load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return torch::pickle_load(bytes).toTensor();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: run LIBRARY FOLDER [cpu|cuda]\n";
    return 2;
  }
  const std::string folder = argv[2], device = argc > 3 ? argv[3] : "cpu";
  // Loading the library registers its ops with torch: the model finds them by their names.
  if (!dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
    std::cerr << "error: " << dlerror() << "\n";
    return 2;
  }
  const c10::InferenceMode no_gradients;
  torch::inductor::AOTIModelPackageLoader model(folder + "/model.pt2");
  const auto outputs = model.run({load(folder + "/input.pt").to(device)});
  const auto expected = load(folder + "/output.pt");
  const auto difference = (outputs.at(0).cpu() - expected).abs().max().item<double>();
  std::cout << "model.pt2 on " << device << ": " << outputs.at(0).sizes()
            << ", largest difference from eager torch " << difference << "\n";
  return difference < 1e-4 ? 0 : 1;
}
