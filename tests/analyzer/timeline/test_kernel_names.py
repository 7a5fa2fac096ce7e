"""Kernel names as vendors' libraries write them, and what they say."""

import pytest

from torchtraceap.analyzer.timeline.kernel_names import KernelName, Precision, decode
from torchtraceap.analyzer.timeline.model import KernelClass as K

P = Precision

MATRIX = [
    ("ampere_sgemm_128x64_nn", K.GEMM_SIMT, P.FP32, 0),
    ("volta_sgemm_32x32_sliced1x4_tn", K.GEMM_SIMT, P.FP32, 0),
    ("volta_dgemm_64x64_nn", K.GEMM_SIMT, P.FP64, 0),
    ("ampere_gcgemm_64x64_nt", K.GEMM_SIMT, P.FP32, 0),
    ("void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false, cublasGemv...>(...)", K.GEMM_SIMT, P.FP32, 0),
    ("void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false>", K.GEMM_SIMT, P.HALF, 0),
    ("void dot_kernel<float, 128, 0, cublasDotParams<...>>", K.GEMM_SIMT, P.FP32, 0),
    ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", K.GEMM_SIMT, P.FP32, 1),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_ffma_aligna4_execute", K.GEMM_SIMT, P.FP32, 0),
    ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_relu_f2f_stages_32x5_nn", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("turing_fp16_s1688gemm_fp16_256x64_ldg8_f2f_tn", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("sm80_xmma_gemm_tf32f32_tf32f32_f32_nn_n_tilesize128x128x16_stage4", K.GEMM_TENSOR_CORE, P.TF32, 0),
    ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>", K.GEMM_TENSOR_CORE, P.TF32, 4),
    ("cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>", K.GEMM_TENSOR_CORE, P.HALF, 1),
    ("cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_128x2_nt_align8", K.GEMM_TENSOR_CORE, P.HALF, 8),
    ("cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16", K.GEMM_TENSOR_CORE, P.INT8, 16),
    ("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("nvjet_hsh_192x192_64x4_2x1_v_bz_coopB_NNN", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT", K.GEMM_TENSOR_CORE, P.FP8, 0),
    ("Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT64x32x64_MI16x16x1_SN", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("Cijk_Alik_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1_SN", K.GEMM_TENSOR_CORE, P.HALF, 0),
    ("Cijk_Ailk_Bjlk_I8II_BH_MT128x128x64_MI16x16x32x1_SN", K.GEMM_TENSOR_CORE, P.INT8, 0),
    ("Cijk_Ailk_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN", K.GEMM_SIMT, P.FP32, 0),
    ("Cijk_Ailk_Bljk_DB_MT64x64x16_MI16x16x4x1_SN", K.GEMM_SIMT, P.FP64, 0),
    ("volta_scudnn_128x64_relu_interior_nn_v1", K.CONV_SIMT, P.FP32, 0),
    ("cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", K.CONV_SIMT, P.FP32, 0),
    ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", K.CONV_SIMT, P.FP32, 0),
    ("void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>", K.CONV_SIMT, P.FP32, 0),
    ("void conv2d_c1_k1_nchw_hw_packed_kernel<float, float, 3>", K.CONV_SIMT, P.FP32, 0),
    ("void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, false, false, 0, 0, float>", K.CONV_SIMT, P.FP32, 0),
    ("volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_exp_small_nhwc2nchw_tn_v1", K.CONV_TENSOR_CORE, P.HALF, 0),
    ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tensor16x8x8", K.CONV_TENSOR_CORE, P.TF32, 0),
    ("sm80_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tensor16x8x16", K.CONV_TENSOR_CORE, P.HALF, 0),
    ("cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8", K.CONV_TENSOR_CORE, P.HALF, 8),
    ("cutlass_tensorop_s1688wgrad_optimized_tf32_128x128_16x4_nhwc_align4", K.CONV_TENSOR_CORE, P.TF32, 4),
    (
        "_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS_10tfloat32_tENS_11MmaTensorOpE",
        K.CONV_TENSOR_CORE,
        P.TF32,
        0,
    ),
    ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x64x16_wt16x16x4", K.CONV_TENSOR_CORE, P.HALF, 0),
    ("igemm_wrw_gtcx2_nhwc_fp32_bx0_ex0_bt128x128x16_wt32x32x2", K.CONV_SIMT, P.FP32, 0),
    (
        "_ZN2ck16tensor_operation6device12_GLOBAL__N_149kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffleINS_34"
        "GridwiseGemmMultipleD_xdl_cshuffleItttftNS_5TupleIJEEEt",
        K.CONV_TENSOR_CORE,
        P.HALF,
        0,
    ),
    (
        "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_47GridwiseGemm_bk0mk1_bk0nk1_mn_"
        "xdlops_bwd_weightILi64EffffLNS_25InMemoryDataOperationEnumE1E",
        K.CONV_SIMT,
        P.FP32,
        0,
    ),
    ("miopenSp3AsmConv_v30_3_1_gfx9_fp16_f2x3_stride1", K.CONV_SIMT, P.HALF, 0),
]

OTHERS = [
    ("Memcpy HtoD (Pageable -> Device)", K.MEMCPY_HTOD),
    ("Memcpy DtoH (Device -> Pinned)", K.MEMCPY_DTOH),
    ("Memcpy DtoD (Device -> Device)", K.MEMCPY_DTOD),
    ("Memcpy PtoP (Device -> Device)", K.MEMCPY_DTOD),
    ("CopyHostToDevice", K.MEMCPY_HTOD),
    ("__amd_rocclr_copyBuffer", K.MEMCPY_DTOD),
    ("Memset (Device)", K.MEMSET),
    ("__amd_rocclr_fillBufferAligned", K.MEMSET),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", K.COMMUNICATION),
    ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", K.COMMUNICATION),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", K.COMMUNICATION),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false>>", K.ATTENTION),
    ("void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>", K.ATTENTION),
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<...>)", K.ATTENTION),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128", K.ATTENTION),
    ("attn_fwd", K.ATTENTION),
    ("bwd_kernel_dk_dv", K.ATTENTION),
    ("void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>", K.NORM),
    ("void at::native::batch_norm_backward_kernel<c10::BFloat16, c10::BFloat16, float, int>", K.NORM),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>", K.NORM),
    ("void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>", K.NORM),
    ("void at::native::(anonymous namespace)::ComputeFusedParamsCUDAKernel<float>", K.NORM),
    ("MIOpenBatchNormFwdTrainSpatialNorm", K.NORM),
    ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>", K.SOFTMAX),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>", K.SOFTMAX),
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>", K.LAYOUT),
    ("void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16, __nv_bfloat16, float>", K.LAYOUT),
    ("void cudnn::ops::nhwcToFoldedNhwcKernel<__half, __half, float, true>", K.LAYOUT),
    ("batched_transpose_16x64_pack_1x4_ediv_1x2_half", K.LAYOUT),
    ("transpose_NCHW2CNHW_V2_2D_WG_off64", K.LAYOUT),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", K.ELEMENTWISE),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(...)>", K.ELEMENTWISE),
    ("void (anonymous namespace)::elementwise_kernel_with_index<int, arange_cuda_out>", K.ELEMENTWISE),
    (
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4>",
        K.ELEMENTWISE,
    ),
    ("SubTensorOpWithScalar1d", K.ELEMENTWISE),
    ("void at::native::elementwise_kernel<128, 2, gpu_kernel_impl<direct_copy_kernel_cuda(...)>>", K.COPY),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>", K.COPY),
    ("SubTensorOpWithCastTensor1d", K.COPY),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>", K.REDUCE),
    ("void splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>", K.REDUCE),
    ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>", K.POOL),
    ("void at::native::(anonymous namespace)::adaptive_average_pool<float>", K.POOL),
    ("mloPoolingG", K.POOL),
    ("void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel<...>>", K.INDEX),
    ("void at::native::_scatter_gather_elementwise_kernel<128, 8, ...>", K.INDEX),
    ("void at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<...>", K.INDEX),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<3>, Adam>", K.OPTIMIZER),
    ("triton_poi_fused_add_relu_3", K.TRITON),
    ("triton__0d1d2d3d", K.TRITON),
    ("cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)", K.OTHER),
    ("at::cuda::(anonymous namespace)::spin_kernel(long)", K.OTHER),
    ("", K.OTHER),
]


@pytest.mark.parametrize(("name", "kernel_class", "precision", "alignment"), MATRIX, ids=[m[0][:40] for m in MATRIX])
def test_matrix_kernels(name: str, kernel_class: K, precision: P, alignment: int) -> None:
    assert decode(name) == KernelName(kernel_class, precision, alignment)


@pytest.mark.parametrize(("name", "kernel_class"), OTHERS, ids=[name[:40] for name, _ in OTHERS])
def test_other_device_work(name: str, kernel_class: K) -> None:
    assert decode(name).kernel_class is kernel_class


def test_an_alignment_of_any_length_is_read() -> None:
    assert decode("cutlass_80_simt_sgemm_128x32_nn_align" + "9" * 5000).kernel_class is K.GEMM_SIMT
